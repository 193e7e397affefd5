// The page of a terminal.
import { startTerminal } from "./terminal.js";

startTerminal(document.getElementById("terminal"));
