// ANSI colours of terminals as pieces of text with CSS classes. Pure: no element is made here but by `spans`.

const ESCAPE = /\x1b(?:\[([0-9;:]*)([@-~])|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()#][0-9A-Za-z]|[=>78DEHMNOZc])/g;
const CONTROL = /[\x00-\x08\x0b-\x1a\x1c-\x1f\x7f]|\x1b/g;
const FLAGS = { 1: "bold", 2: "dim", 3: "italic", 4: "underline", 7: "inverse", 9: "strike" };
const ENDS = { 22: ["bold", "dim"], 23: ["italic"], 24: ["underline"], 27: ["inverse"], 29: ["strike"] };

/** How a line begins: no colour, no flag. */
export const PLAIN = Object.freeze({ fg: "", bg: "", flags: Object.freeze([]) });

/** One of the 256 colours: 0 to 15 have names that the theme knows, the others are fixed. */
export function colour(number) {
  if (number < 16) return `c${number}`;
  if (number < 232) {
    const level = (step) => (step ? 55 + 40 * step : 0);
    const index = number - 16;
    return rgb(level(Math.floor(index / 36)), level(Math.floor(index / 6) % 6), level(index % 6));
  }
  const grey = 8 + 10 * (number - 232);
  return rgb(grey, grey, grey);
}

function rgb(red, green, blue) {
  return "#" + [red, green, blue].map((part) => Math.min(255, part || 0).toString(16).padStart(2, "0")).join("");
}

/** The style after the numbers of one "select graphic rendition" sequence. */
export function styled(style, parameters) {
  const numbers = parameters.split(/[;:]/).map((part) => Number(part || 0));
  let { fg, bg, flags } = style;
  for (let at = 0; at < numbers.length; at += 1) {
    const number = numbers[at];
    if (number === 0) ({ fg, bg, flags } = PLAIN);
    else if (FLAGS[number]) flags = flags.includes(FLAGS[number]) ? flags : [...flags, FLAGS[number]];
    else if (ENDS[number]) flags = flags.filter((flag) => !ENDS[number].includes(flag));
    else if (number >= 30 && number <= 37) fg = colour(number - 30);
    else if (number >= 90 && number <= 97) fg = colour(number - 82);
    else if (number >= 40 && number <= 47) bg = colour(number - 40);
    else if (number >= 100 && number <= 107) bg = colour(number - 92);
    else if (number === 39) fg = "";
    else if (number === 49) bg = "";
    else if (number === 38 || number === 48) {
      let found = "";
      if (numbers[at + 1] === 5) {
        found = colour(Math.min(255, numbers[at + 2] || 0));
        at += 2;
      } else if (numbers[at + 1] === 2) {
        found = rgb(numbers[at + 2], numbers[at + 3], numbers[at + 4]);
        at += 4;
      }
      if (number === 38) fg = found;
      else bg = found;
    }
  }
  return { fg, bg, flags };
}

/** A line as pieces `{text, fg, bg, flags}`, and the style that it ends with. Other sequences leave nothing behind. */
export function pieces(line, style = PLAIN) {
  const found = [];
  const push = (text) => {
    const clean = text.replace(CONTROL, "");
    if (clean) found.push({ text: clean, ...style });
  };
  let from = 0;
  // What was overwritten on the same line (progress bars) is not shown.
  const text = line.slice(line.lastIndexOf("\r", line.length - 2) + 1);
  for (const match of text.matchAll(ESCAPE)) {
    push(text.slice(from, match.index));
    if (match[2] === "m") style = styled(style, match[1]);
    from = match.index + match[0].length;
  }
  push(text.slice(from));
  return { pieces: found, style };
}

/** A line without its sequences: what is searched. */
export function plain(line) {
  return line.includes("\x1b") || line.includes("\r") ? pieces(line).pieces.map((piece) => piece.text).join("") : line;
}

/** Elements for pieces. Colours of the theme are classes, others are set on the element (never as a style attribute). */
export function spans(document, parts) {
  const fragment = document.createDocumentFragment();
  for (const part of parts) {
    if (!part.fg && !part.bg && !part.flags.length) {
      fragment.append(part.text);
      continue;
    }
    const span = document.createElement("span");
    for (const flag of part.flags) span.classList.add(`ansi-${flag}`);
    if (part.fg.startsWith("c")) span.classList.add(`ansi-fg-${part.fg.slice(1)}`);
    else if (part.fg) span.style.color = part.fg;
    if (part.bg.startsWith("c")) span.classList.add(`ansi-bg-${part.bg.slice(1)}`);
    else if (part.bg) span.style.backgroundColor = part.bg;
    span.textContent = part.text;
    fragment.append(span);
  }
  return fragment;
}
