// Makes one piece of the page look like another, and changes only what differs: what has the focus keeps it, what was
// opened stays open, what was scrolled stays where it is. Elements with an id are found again by it.

// What the person, and not the server, decides.
const OWN = new Set(["open", "data-folded", "aria-expanded"]);

export function morph(place, html) {
  const wanted = document.createElement("template");
  wanted.innerHTML = html;
  children(place, wanted.content);
}

function children(place, wanted) {
  const byId = new Map();
  for (const each of place.children) if (each.id) byId.set(each.id, each);
  const stays = new Set([...wanted.children].map((each) => each.id));
  let here = place.firstChild;
  for (const next of [...wanted.childNodes]) {
    // What is in the way goes first: all that follows is not moved then, and keeps the focus and what was ticked.
    while (here && (isBlank(here) ? next.nodeType !== Node.TEXT_NODE : here.id && !stays.has(here.id))) {
      const gone = here;
      here = here.nextSibling;
      gone.remove();
    }
    const known = next.id ? byId.get(next.id) : undefined;
    if (known && known !== here && known.parentNode === place) {
      place.insertBefore(known, here);
      here = known;
    }
    if (here && alike(here, next)) {
      update(here, next);
      here = here.nextSibling;
    } else {
      place.insertBefore(next, here);
    }
  }
  while (here) {
    const gone = here;
    here = here.nextSibling;
    gone.remove();
  }
}

function isBlank(node) {
  return node.nodeType === Node.TEXT_NODE && !node.nodeValue.trim();
}

function alike(one, other) {
  return one.nodeType === other.nodeType && one.nodeName === other.nodeName && (one.id || "") === (other.id || "");
}

function update(node, wanted) {
  if (node.nodeType !== Node.ELEMENT_NODE) {
    if (node.nodeValue !== wanted.nodeValue) node.nodeValue = wanted.nodeValue;
    return;
  }
  // What a script of the page fills is its own.
  if (node.hasAttribute("data-own")) return;
  for (const { name } of [...node.attributes])
    if (!wanted.hasAttribute(name) && !OWN.has(name)) node.removeAttribute(name);
  for (const { name, value } of [...wanted.attributes])
    if (!OWN.has(name) && node.getAttribute(name) !== value) node.setAttribute(name, value);
  children(node, wanted);
}
