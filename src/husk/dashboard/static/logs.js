// The page of a log.
import { startLog } from "./loglines.js";

startLog(document.getElementById("log"));
