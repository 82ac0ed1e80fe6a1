/** The table of commands. A command's own file is loaded when it is called, so that each starts fast. */
import { Command } from "commander";
import { readVersion } from "../base/version.ts";
import type { Run } from "./context.ts";

/** A command's file: its options and its action. `whole`: the program with all commands defined. */
interface Definition {
  define(command: Command, run: Run, whole: () => Promise<Command>): void;
}

const COMMANDS: readonly (readonly [name: string, summary: string, load: () => Promise<Definition>])[] = [
  ["run", "the daemon: mirror every configured mailbox into its inbox", () => import("./run.ts")],
  ["once", "poll every mailbox once, download and deliver its transfers, and end", () => import("./run.ts")],
  ["status", "mailboxes and transfers now", () => import("./status.ts")],
  ["list", "every transfer that is known, with its state", () => import("./list.ts")],
  ["show", "all that is known of one transfer", () => import("./show.ts")],
  ["password", "supply the password of a transfer that waits for one", () => import("./password.ts")],
  ["retry", "try a waiting or quarantined transfer now", () => import("./orders.ts")],
  ["release", "deliver a transfer from quarantine, on your word", () => import("./orders.ts")],
  ["discard", "give up a transfer for good", () => import("./orders.ts")],
  ["redeliver", "deliver once more what was delivered", () => import("./orders.ts")],
  ["demo", "see it work, with a simulated service and a temporary folder", () => import("./demo.ts")],
  ["init", "ask a few questions, and write a configuration", () => import("./init.ts")],
  ["doctor", "check everything the daemon depends on, and say what to correct", () => import("./doctor.ts")],
  ["verify", "re-hash delivered folders against their manifest", () => import("./verify.ts")],
  ["verify-address", "prove a mailbox's address by a mailed code", () => import("./verify-address.ts")],
  ["history", "past transfers: when, from whom, and what became of them", () => import("./history.ts")],
  ["completion", "print a script that lets a shell complete commands", () => import("./completion.ts")],
  ["simulate", "run a simulated transfer service, for trying things out", () => import("./simulate.ts")],
  ["api", "use each operation of the service by hand", () => import("./api.ts")],
];

export function createProgram(run: Run): Command {
  const program = new Command("inlet")
    .description("Receives transfers, proves them complete, and hands each over as one finished folder.")
    .version(readVersion())
    .configureHelp({ showGlobalOptions: true })
    .showHelpAfterError("(add --help for what is possible)")
    .exitOverride();
  for (const [name, summary] of COMMANDS) program.command(name).description(summary);
  // Commander's own help command would describe a command that is not loaded yet.
  program
    .helpCommand(false)
    .command("help [command...]", { hidden: true })
    .action(async (words: string[]) => {
      await program.parseAsync([...words, "--help"], { from: "user" });
    });
  const defined = new Set<string>();
  const defineOnce = async (command: Command) => {
    const load = COMMANDS.find(([name]) => name === command.name())?.[2];
    if (load === undefined || defined.has(command.name())) return;
    defined.add(command.name());
    (await load()).define(command, run, whole);
  };
  const whole = async () => {
    for (const command of program.commands) await defineOnce(command);
    return program;
  };
  return program.hook("preSubcommand", (_program, called) => defineOnce(called));
}
