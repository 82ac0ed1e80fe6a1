/** `status --watch`: the status on the whole screen, until q or Ctrl-C. */
import { pauseOrAbort } from "../base/timers.ts";
import type { Reading } from "../operate/status.ts";
import type { Context, Outcome } from "./command.ts";
import { fitStatus } from "./status-text.ts";

const REDRAW_MS = 1_000;
const [CTRL_C, CTRL_D] = ["\u0003", "\u0004"];

/** Switch to the alternate screen without a cursor, and back. */
const BEGIN = "\u001b[?1049h\u001b[?25l";
const END = "\u001b[?25h\u001b[?1049l";

export async function watchStatus(context: Context, read: () => Promise<Reading>): Promise<Outcome> {
  const { stdin, stdout, stop } = context;
  const keys = new AbortController();
  const ended = AbortSignal.any([stop, keys.signal]);
  let outcome: Outcome = "interrupted";
  const onKey = (key: Buffer) => {
    const typed = key.toString();
    const isQuit = /[qQ]/.test(typed) || typed.includes(CTRL_D);
    if (isQuit && !typed.includes(CTRL_C)) outcome = "fine";
    if (isQuit || typed.includes(CTRL_C)) keys.abort();
  };
  const restore = () => void stdout.write(END);
  let last: Reading | undefined;
  const draw = () => {
    if (last === undefined || ended.aborted) return;
    const { status, instead } = last;
    const lines = fitStatus(status, instead, stdout);
    stdout.write(`\u001b[H${lines.map((line) => `${line}\u001b[K`).join("\r\n")}\u001b[J`);
  };
  process.once("exit", restore);
  stdout.write(BEGIN);
  stdout.on("resize", draw);
  // Without a terminal to type on, a signal ends it.
  if (stdin.isTTY) stdin.setRawMode(true).on("data", onKey).resume();
  try {
    while (!ended.aborted) {
      last = await read();
      draw();
      await pauseOrAbort(REDRAW_MS, ended);
    }
    return outcome;
  } finally {
    process.removeListener("exit", restore);
    stdout.off("resize", draw);
    if (stdin.isTTY) stdin.off("data", onKey).setRawMode(false).pause();
    restore();
  }
}
