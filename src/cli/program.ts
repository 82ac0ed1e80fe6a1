/** The table of commands. A command's own file is loaded when it is called, so that each starts fast. */
import { readFileSync } from "node:fs";
import { Command } from "commander";
import type { Run } from "./context.ts";

/** What each command's file offers: its options and what it does. */
interface Definition {
  define(command: Command, run: Run): void;
}

const COMMANDS: readonly (readonly [name: string, summary: string, load: () => Promise<Definition>])[] = [
  ["run", "the daemon: mirror every configured mailbox into its inbox", () => import("./run.ts")],
  ["once", "poll every mailbox once, collect what can be collected, and end", () => import("./once.ts")],
  ["demo", "see it work, with a simulated service and a temporary folder", () => import("./demo.ts")],
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
  return program.hook("preSubcommand", async (_program, called) => {
    const load = COMMANDS.find(([name]) => name === called.name())?.[2];
    (await load?.())?.define(called, run);
  });
}

/** The same distance from here in src and in dist. */
function readVersion(): string {
  const file = new URL("../../package.json", import.meta.url);
  return (JSON.parse(readFileSync(file, "utf8")) as { version: string }).version;
}
