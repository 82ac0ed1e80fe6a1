/** Opens a simulated service on a port of this machine. */
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { type Clock, systemClock } from "../src/base/clock.ts";
import { Accounts } from "./accounts.ts";
import type { World } from "./call.ts";
import { Checksums } from "./checksums.ts";
import { createControl } from "./control.ts";
import { Faults } from "./faults.ts";
import { Journal } from "./journal.ts";
import { PasswordGuard } from "./password-guard.ts";
import { createRoutes } from "./routes.ts";
import { parseScenario, type Scenario } from "./scenario.ts";
import { serve } from "./serve.ts";
import { settingsOf } from "./settings.ts";
import { createSimulator, MovableClock, type Simulator } from "./simulator.ts";
import { Transfers } from "./transfers.ts";
import { Wires } from "./wire.ts";

export interface SimulatorOptions {
  /** Default 127.0.0.1. */
  readonly host?: string;
  /** Default 0: any free port. */
  readonly port?: number;
  readonly clock?: Clock;
  /** Called with one line per request, without passwords, tokens and client ids. */
  readonly log?: (line: string) => void;
  /** Serves https with this key and certificate (PEM). */
  readonly tls?: { readonly key: string | Buffer; readonly cert: string | Buffer };
}

/** Throws a ScenarioError for a wrong scenario, and the system's error if it cannot listen. */
export async function openSimulator(
  scenario: Scenario = {},
  options: SimulatorOptions = {},
): Promise<Simulator> {
  const { host = "127.0.0.1", port = 0, log = () => {}, tls } = options;
  const plan = parseScenario(scenario);
  const time = new MovableClock(options.clock ?? systemClock);
  const closing = new AbortController();
  let url = "";
  const world = createWorld(plan, time, () => url, closing.signal);
  const faults = new Faults();
  for (const transfer of plan.transfers ?? []) world.transfers.add(transfer);
  for (const fault of plan.faults ?? []) faults.add(fault);

  const server: Server =
    tls === undefined ? createServer() : createTlsServer({ key: tls.key, cert: tls.cert });
  const wires = new Wires(server);
  server.listen(port, host);
  await once(server, "listening");
  url = urlOf(server, tls !== undefined);

  const journal = new Journal();
  const simulator = createSimulator({
    world,
    time,
    faults,
    journal,
    close: () => close(server, wires, closing),
  });
  const parts = {
    world,
    faults,
    journal,
    wires,
    log,
    routes: createRoutes(world.settings),
    control: createControl(simulator),
  };
  server.on("request", (message, response) => void serve(message, response, parts));
  return simulator;
}

function createWorld(scenario: Scenario, clock: Clock, url: World["url"], signal: AbortSignal): World {
  const settings = settingsOf(scenario);
  const transfers = new Transfers(settings, clock);
  return {
    settings,
    clock,
    accounts: new Accounts(settings, clock),
    transfers,
    guard: new PasswordGuard(settings, transfers, clock),
    checksums: new Checksums(signal),
    zipSizes: new Map(),
    url,
  };
}

/** The address for clients on this machine, even if the server listens on every address. */
function urlOf(server: Server, isTls: boolean): string {
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the simulator listens on no port");
  const host = { "0.0.0.0": "127.0.0.1", "::": "[::1]" }[address.address] ?? bracketed(address.address);
  return `${isTls ? "https" : "http"}://${host}:${address.port}`;
}

function bracketed(host: string): string {
  return host.includes(":") ? `[${host}]` : host;
}

async function close(server: Server, wires: Wires, closing: AbortController): Promise<void> {
  if (!server.listening) return;
  const closed = once(server, "close");
  server.close();
  wires.destroyAll();
  await closed;
  closing.abort();
}
