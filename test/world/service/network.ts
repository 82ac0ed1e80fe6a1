/** The network of a world: processes reach its services over HTTP in memory, in virtual time. */
import { Dispatcher, errors } from "undici";
import type { openConnections } from "../../../src/base/connection.ts";
import type { Process } from "../ground/process.ts";
import type { Planned, Schedule } from "../ground/schedule.ts";
import type { Outcome } from "./answers.ts";
import type { Incoming, RequestEntry } from "./requests.ts";
import type { WorldService } from "./service.ts";

/** How long a connection, a request or an answer takes, at most. */
const TRAVEL_MS = 50;
/** From one byte to the next of an answer that drips, at least. The most is twice as long. */
const DRIP_MS = 2_000;
/** Of the requests, the share that needs a new connection. */
const NEW_CONNECTIONS = 0.2;
/** Of the connections to a service that is away, the share that is not refused but gets no answer. */
const UNANSWERED = 0.25;

/** A request uses a connection that is open, or at random a new one, which takes a while. */
export class Network {
  /** By origin. Several origins may lead to one service. */
  readonly hosts = new Map<string, WorldService>();
  /** Called with each request to an origin that no service has. */
  onStray: (origin: string, request: Incoming) => void = () => {};
  readonly schedule: Schedule;
  /** Requests whose answers have not ended. */
  readonly unanswered = new Set<RequestEntry>();

  constructor(schedule: Schedule) {
    this.schedule = schedule;
  }

  /** The connections of one process. */
  open(process: Process): typeof openConnections {
    return ({ timeoutMs }, { origin }) => new Connections(this, process, origin, timeoutMs);
  }
}

/** As undici's `Pool`. */
class Connections extends Dispatcher {
  readonly network: Network;
  readonly process: Process;
  readonly timeoutMs: number;
  readonly #origin: string;
  readonly #exchanges = new Set<Exchange>();
  #whenIdle: (() => void) | undefined;
  #state: "open" | "closed" | "destroyed" = "open";

  constructor(network: Network, process: Process, origin: string, timeoutMs: number) {
    super();
    this.network = network;
    this.process = process;
    this.#origin = origin;
    this.timeoutMs = timeoutMs;
  }

  override dispatch(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): boolean {
    const exchange = new Exchange(this, requestOf(this.process, this.#origin, options), handler);
    if (this.#state !== "open") {
      exchange.fail(
        this.#state === "closed" ? new errors.ClientClosedError() : new errors.ClientDestroyedError(),
      );
      return false;
    }
    this.#exchanges.add(exchange);
    exchange.begin();
    return true;
  }

  ended(exchange: Exchange): void {
    this.#exchanges.delete(exchange);
    if (this.#exchanges.size === 0) this.#whenIdle?.();
  }

  /** Resolves when running requests have ended. */
  override async close(): Promise<void> {
    if (this.#state === "open") this.#state = "closed";
    if (this.#exchanges.size === 0) return;
    await new Promise<void>((resolve) => {
      this.#whenIdle = resolve;
    });
  }

  override async destroy(): Promise<void> {
    this.#state = "destroyed";
    for (const exchange of [...this.#exchanges]) exchange.fail(new errors.ClientDestroyedError());
  }
}

/** One request and its answer. A process that is dead or frozen does not keep its request from the service. */
class Exchange implements Dispatcher.DispatchController {
  aborted = false;
  paused = false;
  reason: Error | null = null;
  readonly #connections: Connections;
  readonly #request: Incoming;
  readonly #handler: Dispatcher.DispatchHandler;
  /** Missing: the origin is unknown. */
  readonly #service: WorldService | undefined;
  /** It ended, or failed. */
  #isOver = false;
  #planned: Planned | undefined;
  #sentMs = 0;
  #outcome: Outcome | undefined;
  /** What waits for the end of a pause. */
  #onResume: (() => void) | undefined;

  constructor(connections: Connections, request: Incoming, handler: Dispatcher.DispatchHandler) {
    this.#connections = connections;
    this.#request = request;
    this.#handler = handler;
    this.#service = connections.network.hosts.get(request.origin);
  }

  begin(): void {
    const { network, timeoutMs } = this.#connections;
    const { origin, path } = this.#request;
    const service = this.#service;
    if (service === undefined) {
      network.onStray(origin, this.#request);
      this.#later(1, () => this.fail(systemError("ENOTFOUND", `getaddrinfo ENOTFOUND ${origin}`)));
    } else if (service.isAway(path)) {
      const isRefused = !service.random.chance(UNANSWERED);
      const error = isRefused ? systemError("ECONNREFUSED", "connect ECONNREFUSED") : connectTimeout();
      this.#later(isRefused ? service.random.int(TRAVEL_MS) : timeoutMs, () => this.fail(error));
    } else if (service.random.chance(NEW_CONNECTIONS)) {
      this.#later(service.random.int(TRAVEL_MS), () => this.#send(service));
    } else {
      this.#send(service);
    }
  }

  #send(service: WorldService): void {
    const { schedule } = this.#connections.network;
    this.#handler.onRequestStart?.(this, null);
    if (this.#isOver) return;
    this.#sentMs = schedule.nowMs;
    schedule.after(service.random.int(TRAVEL_MS), () => this.#arrive(service));
  }

  /** At the service. What was sent arrives, also if it was aborted meanwhile. */
  #arrive(service: WorldService): void {
    const { network, timeoutMs } = this.#connections;
    const outcome = service.receive(this.#request);
    this.#outcome = outcome;
    network.unanswered.add(outcome.entry);
    if (this.#isOver) {
      network.unanswered.delete(outcome.entry);
      outcome.entry.answered = "none";
      service.onAnswered(outcome.entry);
      return;
    }
    const passedMs = network.schedule.nowMs - this.#sentMs;
    const answerMs = service.random.int(TRAVEL_MS) + (outcome.delayMs ?? 0);
    const isSilent = outcome.answer === undefined && outcome.cutAt === undefined;
    if (isSilent || passedMs + answerMs > timeoutMs) {
      this.#later(Math.max(0, timeoutMs - passedMs), () => this.fail(new errors.HeadersTimeoutError()));
    } else {
      this.#later(answerMs, () => this.#begin(outcome, service));
    }
  }

  #begin({ answer, cutAt }: Outcome, service: WorldService): void {
    if (answer === undefined || cutAt === "head") {
      this.fail(connectionLost(service.random.chance(0.5)));
      return;
    }
    const { status, headers, isContent } = answer;
    if (isContent) this.#report("own");
    this.#handler.onResponseStart?.(this, status, { ...headers });
    if (!this.#isOver) this.#continue(0);
  }

  /** Passes on the next part of the body. */
  #continue(from: number): void {
    const outcome = this.#outcome as Outcome;
    const { body } = outcome.answer as { body: Buffer };
    const to = partEnd(outcome, from, body.length);
    if (to > from) this.#handler.onResponseData?.(this, body.subarray(from, to));
    if (this.#isOver) return;
    const { timeoutMs } = this.#connections;
    if (to === outcome.cutAt) this.fail(connectionLost(false));
    else if (to === outcome.stallsAt) this.#later(timeoutMs, () => this.fail(new errors.BodyTimeoutError()));
    else if (to === body.length) this.#end();
    else this.#continueLater(to, outcome.isDripping === true);
  }

  #continueLater(from: number, isDripping: boolean): void {
    const { timeoutMs } = this.#connections;
    const randomMs = (limit: number) => this.#service?.random.int(limit) ?? 0;
    const waitMs = isDripping ? DRIP_MS + randomMs(DRIP_MS) : randomMs(TRAVEL_MS);
    if (waitMs > timeoutMs) this.#later(timeoutMs, () => this.fail(new errors.BodyTimeoutError()));
    else this.#later(waitMs, () => this.#unlessPaused(() => this.#continue(from)));
  }

  #unlessPaused(work: () => void): void {
    if (this.paused) this.#onResume = work;
    else work();
  }

  #end(): void {
    this.#finish(this.#outcome?.answer?.isOwn === true ? "own" : "foreign");
    this.#handler.onResponseEnd?.(this, {});
  }

  fail(error: Error): void {
    if (this.#isOver) return;
    this.#finish("none");
    this.#handler.onResponseError?.(this, error);
  }

  abort(reason: Error): void {
    if (this.#isOver) return;
    this.aborted = true;
    this.reason = reason;
    this.fail(reason);
  }

  pause(): void {
    this.paused = true;
  }

  resume(): void {
    this.paused = false;
    const work = this.#onResume;
    this.#onResume = undefined;
    if (work !== undefined) this.#later(0, work);
  }

  #finish(answered: "own" | "foreign" | "none"): void {
    this.#isOver = true;
    if (this.#outcome !== undefined) this.#connections.network.unanswered.delete(this.#outcome.entry);
    this.#connections.network.schedule.cancel(this.#planned);
    this.#connections.ended(this);
    this.#report(answered);
  }

  /** Once: the content of a file may fail after its head was the answer. */
  #report(answered: "own" | "foreign" | "none"): void {
    const { entry } = this.#outcome ?? {};
    if (entry === undefined || entry.answered !== undefined) return;
    entry.answered = answered;
    this.#service?.onAnswered(entry);
  }

  /** An event of the process. */
  #later(ms: number, run: () => void): void {
    const { network, process } = this.#connections;
    this.#planned = network.schedule.after(ms, () => void (this.#isOver || process.run(run)), process);
  }
}

function requestOf(
  process: Process,
  origin: string,
  { path, method, headers, body }: Dispatcher.DispatchOptions,
): Incoming {
  const sent = (headers ?? {}) as Readonly<Record<string, string>>;
  return { process, origin, method, path, headers: sent, body: typeof body === "string" ? body : "" };
}

/** Content comes in two parts. */
function partEnd({ answer, cutAt, stallsAt, isDripping }: Outcome, from: number, length: number): number {
  const half = Math.ceil(length / 2);
  const usual = answer?.isContent && from < half ? half : length;
  const limits = [cutAt, stallsAt].filter((limit) => typeof limit === "number");
  return Math.min(isDripping ? from + 1 : usual, length, ...limits);
}

function connectionLost(isReset: boolean): Error {
  return isReset ? systemError("ECONNRESET", "read ECONNRESET") : new errors.SocketError("other side closed");
}

function connectTimeout(): Error {
  return new errors.ConnectTimeoutError("Connect Timeout Error");
}

function systemError(code: string, message: string): Error {
  return Object.assign(new Error(message), { code });
}
