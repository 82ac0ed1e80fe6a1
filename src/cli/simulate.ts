/** `simulate`: the simulated service, until a signal stops it. */
import { readFile } from "node:fs/promises";
import type { Command } from "commander";
import { ScenarioError } from "../../simulator/errors.ts";
import { openSimulator } from "../../simulator/open.ts";
import { SCENARIO_REFERENCE } from "../../simulator/reference.ts";
import { sampleScenario } from "../../simulator/samples.ts";
import { parseScenario, type Scenario } from "../../simulator/scenario.ts";
import type { Simulator } from "../../simulator/simulator.ts";
import { type Context, invalid, type Outcome, type Runner, untilStopped } from "./command.ts";
import { wholeNumber } from "./options.ts";
import { say } from "./printing.ts";

interface SimulateOptions {
  readonly port: number;
  readonly host: string;
  readonly scenario?: string;
  readonly quiet?: boolean;
}

const HELP = `
The first line on standard output is JSON: url, clientId, pid (to stop it), and for each transfer and recipient:
mailbox, sender, trackingId, transferId and password. Each request is logged on standard error, without secrets.

  INLET_SERVICE__BASEURL=URL INLET_SERVICE__CLIENTID=CLIENT-ID inlet api received orders@example.com
  curl URL/control      how to add transfers and faults, advance the clock, and list the requests

${SCENARIO_REFERENCE}`;

export function define(simulate: Command, run: Runner): void {
  simulate
    .option("--port <number>", "the port to listen on (0: any free port)", wholeNumber(0, 65_535), 0)
    .option("--host <address>", "the address to listen on", "127.0.0.1")
    .option("--scenario <file>", "its transfers and faults (default: a few samples)")
    .option("--quiet", "do not log each request")
    .addHelpText("after", HELP)
    .action(run(runSimulator));
}

async function runSimulator(context: Context, options: SimulateOptions): Promise<Outcome> {
  const simulator = await open(context, options);
  try {
    context.stdout.write(`${JSON.stringify(describe(simulator))}\n`);
    say(
      context,
      `Listening on ${simulator.url}; GET ${simulator.url}/control shows the help. Stop with Ctrl-C.`,
    );
    await untilStopped(context.stop);
  } finally {
    await simulator.close();
  }
  return "fine";
}

async function open(context: Context, options: SimulateOptions): Promise<Simulator> {
  const scenario = options.scenario === undefined ? sampleScenario : await readScenario(options.scenario);
  try {
    return await openSimulator(scenario, {
      host: options.host,
      port: options.port,
      ...(options.quiet ? {} : { log: (line: string) => say(context, line) }),
    });
  } catch (cause) {
    if (!(cause instanceof Error && "code" in cause)) throw cause;
    throw invalid(`cannot listen on ${options.host} port ${options.port} (${String(cause.code)})`, cause);
  }
}

async function readScenario(path: string): Promise<Scenario> {
  const text = await readFile(path, "utf8").catch((cause: unknown) => {
    throw invalid(`${path} cannot be read`, cause);
  });
  try {
    return parseScenario(JSON.parse(text));
  } catch (cause) {
    if (!(cause instanceof ScenarioError || cause instanceof SyntaxError)) throw cause;
    throw invalid(`${path}: ${cause.message.replaceAll("\n", "; ")}`, cause);
  }
}

function describe(simulator: Simulator) {
  const transfers = simulator
    .transfers()
    .flatMap(({ sender, trackingId, password, recipients }) =>
      recipients.map(({ mailbox, transferId }) => ({ mailbox, sender, trackingId, transferId, password })),
    );
  return { url: simulator.url, clientId: simulator.clientId, pid: process.pid, transfers };
}
