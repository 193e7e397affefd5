// What a line of a log says of itself: its level, by the words that programs use, and its fields where it is JSON. Pure.

/** From the least to the worst; lines that tell no level are below all. */
export const LEVELS = ["", "debug", "info", "warn", "error"];
// A map, for words of strangers may be `constructor`, which every object has.
const WORDS = new Map(Object.entries({
  trace: "debug", debug: "debug", dbg: "debug", verbose: "debug",
  info: "info", notice: "info", inf: "info",
  warn: "warn", warning: "warn", wrn: "warn",
  error: "error", err: "error", fatal: "error", panic: "error", critical: "error", crit: "error", emerg: "error", alert: "error",
  severe: "error", exception: "error", traceback: "error",
}));
// As far as a level is looked for: it stands at the beginning.
const HEAD = 160;
const WORD = new RegExp(`\\b(${[...WORDS.keys()].join("|")})\\b`, "i");
// Of lines that are JSON: names of the level and of the message.
const LEVEL_KEYS = ["level", "severity", "lvl", "log.level", "loglevel", "levelname"];
const MESSAGE_KEYS = ["msg", "message", "event", "text", "log"];
const LONGEST = 1 << 16;
const wordOf = (text) => WORDS.get(text.toLowerCase()) ?? "";
// What numbers of pino and bunyan mean: 20 debug, 30 info, 40 warn, 50 error, 60 fatal.
const numbered = (value) => (value >= 50 ? "error" : value >= 40 ? "warn" : value >= 30 ? "info" : "debug");

function parsed(text) {
  if (!text.startsWith("{") || text.length > LONGEST) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The level of a line: `debug`, `info`, `warn`, `error`, or an empty text where it tells none. */
export function level(text) {
  const document = parsed(text);
  if (document) {
    const value = document[LEVEL_KEYS.find((each) => Object.hasOwn(document, each))];
    if (typeof value === "number") return numbered(value);
    return typeof value === "string" ? wordOf(value) : "";
  }
  const found = WORD.exec(text.slice(0, HEAD));
  return found ? wordOf(found[1]) : "";
}

function written(value) {
  try {
    return JSON.stringify(value);
  } catch {
    return "…"; // It is read however deep it is, and cannot be written so.
  }
}

/** A line of JSON as its message and the rest as `key=value`; undefined for a line that is none. */
export function fields(text) {
  const document = parsed(text);
  if (!document) return undefined;
  const key = MESSAGE_KEYS.find((each) => typeof document[each] === "string");
  const rest = Object.entries(document)
    .filter(([name]) => name !== key)
    .map(([name, value]) => `${name}=${typeof value === "object" ? written(value) : value}`);
  return { message: key ? document[key] : "", rest: rest.join("  ") };
}
