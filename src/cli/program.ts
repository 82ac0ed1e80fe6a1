/** The table of commands. A command's own file is loaded when it is called, so that each starts fast. */
import { Command } from "commander";
import { readVersion } from "../base/version.ts";
import type { Context, Outcome, Runner } from "./command.ts";

/** A command's file: its options and its action. */
interface Definition {
  define(command: Command, run: Runner): void;
}

const COMMANDS: readonly (readonly [name: string, summary: string, load: () => Promise<Definition>])[] = [
  ["run", "run the daemon, which mirrors every configured mailbox into the inbox", () => import("./run.ts")],
  ["once", "poll every mailbox once, deliver its transfers, and exit", () => import("./run.ts")],
  ["status", "show mailboxes and transfers as they are now", () => import("./status.ts")],
  ["list", "list all known transfers with their states", () => import("./list.ts")],
  ["show", "show everything known about one transfer", () => import("./show.ts")],
  ["route", "explain which route a transfer takes", () => import("./route.ts")],
  ["password", "supply the password of a waiting transfer", () => import("./password.ts")],
  ["retry", "retry a waiting or quarantined transfer now", () => import("./orders.ts")],
  [
    "release",
    "deliver a transfer that is held or in quarantine, on your responsibility",
    () => import("./orders.ts"),
  ],
  ["discard", "give up a transfer for good", () => import("./orders.ts")],
  ["redeliver", "deliver a transfer once more", () => import("./orders.ts")],
  ["poll", "poll a mailbox now, or all of them", () => import("./mailboxes.ts")],
  ["pause", "stop polling a mailbox, or all of them, until you resume it", () => import("./mailboxes.ts")],
  ["resume", "end the pause of a mailbox, or of all of them", () => import("./mailboxes.ts")],
  ["adopt", "leave out what may have been delivered before", () => import("./adopt.ts")],
  ["anew", "deliver what may have been delivered before", () => import("./adopt.ts")],
  ["demo", "watch Inlet work, with a simulated service and a temporary folder", () => import("./demo.ts")],
  ["init", "ask a few questions and write a configuration", () => import("./init.ts")],
  ["doctor", "check everything the daemon depends on, and give advice", () => import("./doctor.ts")],
  ["notify", "test the notifications", () => import("./notify.ts")],
  [
    "config",
    "check the configuration, show its effective values, or print its schema",
    () => import("./config.ts"),
  ],
  ["verify", "re-hash delivered folders against their manifests", () => import("./verify.ts")],
  ["verify-address", "verify a mailbox's address with a mailed code", () => import("./verify-address.ts")],
  ["history", "list past transfers: when, from whom, and how they ended", () => import("./history.ts")],
  ["completion", "print a completion script for your shell", () => import("./completion.ts")],
  ["version", "print the version of Inlet and Node, and the platform", () => import("./version.ts")],
  ["simulate", "run a simulated transfer service for experiments", () => import("./simulate.ts")],
  ["api", "call single operations of the service", () => import("./api.ts")],
];

/** Runs the work of a command. Its outcome becomes the program's exit code. */
type Perform = (work: (context: Context) => Promise<Outcome>) => Promise<void>;

/** The program with all commands defined, to describe them. */
export async function describeProgram(): Promise<Command> {
  // Described, not run.
  const { program, load } = createProgram(async () => {});
  for (const command of program.commands) await load(command);
  return program;
}

/** `load` defines the options and the action of a command, unless it did so before. */
export function createProgram(perform: Perform) {
  const program = new Command("inlet")
    .description("Receives transfers, verifies them, and delivers each as one finished folder.")
    .version(readVersion())
    .configureHelp({ showGlobalOptions: true })
    .showHelpAfterError("(see --help)")
    .exitOverride();
  const loaders = new Map(
    COMMANDS.map(([name, summary, load]) => [program.command(name).description(summary), load]),
  );
  // Commander's own help command would describe a command that is not loaded yet.
  program
    .helpCommand(false)
    .command("help [command...]", { hidden: true })
    .action(async (words: string[]) => {
      await program.parseAsync([...words, "--help"], { from: "user" });
    });
  const run: Runner =
    (work) =>
    async (...args) =>
      perform((context) => work(context, ...args));
  const load = async (command: Command) => {
    const definition = await loaders.get(command)?.();
    if (loaders.delete(command)) definition?.define(command, run);
  };
  program.hook("preSubcommand", (_program, called) => load(called));
  return { program, load };
}
