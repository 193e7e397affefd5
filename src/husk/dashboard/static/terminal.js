// A terminal in a page: xterm.js over a WebSocket.
//
// `startTerminal(element)` reads `data-socket` (the address of the WebSocket) and `data-xterm`, `data-fit` (those of the
// vendored modules). What is typed is sent as binary messages, a new size as text: {"resize": [columns, rows]}; what the
// process writes comes as binary messages, and {"exit": code} or {"error": "…"} as text when it has ended.

/**
 * Our pages forbid style that a page brings itself, and xterm.js makes `<style>` elements and `style` attributes, in documents
 * of its choice. On the page of a terminal these become style sheets and properties made by script, which are allowed.
 */
export function allowStyles(document) {
  const createElement = document.createElement.bind(document);
  document.createElement = (name, ...rest) =>
    String(name).toLowerCase() === "style" ? sheetElement(document, createElement("span")) : createElement(name, ...rest);
  const { prototype } = document.defaultView.Element;
  const { setAttribute } = prototype;
  prototype.setAttribute = function (name, value) {
    if (name === "style" && this.style) this.style.cssText = value;
    else setAttribute.call(this, name, value);
  };
}

/** An element that stands for a `<style>`: its text is a style sheet of the document as long as it is used. */
function sheetElement(document, made) {
  const sheet = new CSSStyleSheet();
  made.hidden = true;
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
  Object.defineProperty(made, "textContent", {
    get: () => [...sheet.cssRules].map((rule) => rule.cssText).join("\n"),
    set: (text) => sheet.replaceSync(text),
  });
  made.remove = () => {
    document.adoptedStyleSheets = document.adoptedStyleSheets.filter((each) => each !== sheet);
    Element.prototype.remove.call(made);
  };
  return made;
}

/** The colours of the page for the terminal. */
function theme(element) {
  const style = getComputedStyle(element);
  return { background: style.backgroundColor, foreground: style.color, cursor: style.color };
}

export async function startTerminal(element) {
  const { Terminal } = await import(element.dataset.xterm);
  const { FitAddon } = await import(element.dataset.fit);
  allowStyles(document);
  const terminal = new Terminal({
    fontFamily: "ui-monospace, monospace",
    fontSize: 14,
    screenReaderMode: true,
    theme: theme(element),
  });
  const fit = new FitAddon();
  terminal.loadAddon(fit);
  terminal.open(element);
  fit.fit();
  const address = new URL(element.dataset.socket, location.href);
  address.protocol = address.protocol.replace("http", "ws");
  const socket = new WebSocket(address);
  socket.binaryType = "arraybuffer";
  const encoder = new TextEncoder();
  const send = (data) => {
    if (socket.readyState === WebSocket.OPEN) socket.send(data);
  };
  const resize = () => send(JSON.stringify({ resize: [terminal.cols, terminal.rows] }));
  const end = (text) => {
    terminal.options.disableStdin = true;
    if (!element.dataset.ended) terminal.write(`\r\n\x1b[2m${text}\x1b[0m\r\n`);
    element.dataset.ended = "yes";
  };
  socket.addEventListener("open", resize);
  socket.addEventListener("message", ({ data }) => {
    if (typeof data !== "string") {
      terminal.write(new Uint8Array(data));
      return;
    }
    const told = JSON.parse(data);
    if ("exit" in told) end(`The process has ended with status ${told.exit}.`);
    if ("error" in told) end(told.error);
  });
  socket.addEventListener("close", () => end("The connection is closed."));
  terminal.onData((text) => send(encoder.encode(text)));
  terminal.onBinary((text) => send(Uint8Array.from(text, (sign) => sign.charCodeAt(0))));
  terminal.onResize(resize);
  new ResizeObserver(() => fit.fit()).observe(element);
  // Tab belongs to the shell; with Escape, Tab a keyboard user leaves the terminal.
  let leaving = false;
  terminal.attachCustomKeyEventHandler((event) => {
    if (event.type === "keydown") {
      if (event.key === "Tab" && leaving) return false;
      leaving = event.key === "Escape";
    }
    return true;
  });
  terminal.focus();
  return { terminal, socket };
}
