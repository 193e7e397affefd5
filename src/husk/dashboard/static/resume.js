// The page that asks to sign in. Pages of a session are below a path of its own (`/~…/containers`): a browser that has
// signed in and asks for `/containers`, or for a page of an older session, is led to the same page of its session.

const KEPT = "husk-root";

/** Where to go on, of a location and the root that is kept: an address, or null where the kept root is no good. */
export function resumed({ pathname, search, hash }, root) {
  if (!/^\/~[\w-]{43}$/.test(root)) return null;
  const [, here, rest] = /^(\/~[\w-]{43}(?=\/|$))?(.*)$/s.exec(pathname);
  if (here === root) return null;
  return root + (rest === "/sign-in" ? "/" : rest || "/") + search + hash;
}

try {
  const kept = localStorage.getItem(KEPT);
  const next = kept === null ? null : resumed(location, kept);
  if (next !== null) location.replace(next);
  else localStorage.removeItem(KEPT);
} catch {
  // Storage is off in this browser.
}
