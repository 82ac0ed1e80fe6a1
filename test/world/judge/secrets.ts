/** Judges every request that a service got: which secrets it carried, and whether it was allowed then. */
import type { Process } from "../ground/process.ts";
import type { StoredTransfer } from "../plan/sent.ts";
import { CLIENT_IDS, RULE_PASSWORDS } from "../plan/site.ts";
import type { RequestEntry as Request } from "../service/requests.ts";
import type { World } from "../world.ts";

/** Attempts at one transfer, by its tracking-id: its budget does not depend on who asks, and where. */
class Attempts {
  /** Passwords that the service has accepted, and somebody knows that, each with the address that it was sent to. */
  readonly proven = new Set<string>();
  /** When a process got to know that a password is refused. */
  readonly refusedMs = new Map<string, number>();
  /** Refused, or with an unknown verdict. */
  spent = 0;
  /** As many of these nobody can know of: their records are lost. */
  forgotten = 0;
  /** A verdict is unknown to a process that may not know that its password was accepted before. */
  isDoubtful = false;
  /** On their way. */
  readonly open = new Set<Request>();
  /** When a process got to know that only a browser opens it, by transfer-id. */
  readonly unsupportedMs = new Map<string, number>();
  /** By transfer-id. */
  readonly locks = new Map<string, { readonly knownMs: number; readonly untilMs: number }>();
}

/** In ten minutes, of one process by one service. */
const MOST_TOKEN_REFUSALS = 10;
/** What a person supplies is taken up within this time, by each process of a fleet. */
const TAKEN_UP_MS = 130_000;
const SECOND_MS = 1_000;
const HOUR_MS = 3_600_000;
const LONGEST_LOCK_MS = 24 * HOUR_MS;
/** However short a service says that a lock is, it is left alone for so long. */
const LEAST_LOCK_MS = 50 * SECOND_MS;
/** A process that dies this soon after an answer may not have recorded it. */
const RECORD_MS = 3 * SECOND_MS;
/** Running work learns that its round has ended within some seconds. */
const END_KNOWN_MS = 30 * SECOND_MS;

export class Requests {
  readonly #world: World;
  readonly #attempts = new Map<string, Attempts>();
  /** When a process got an unknown verdict of a service, and no own answer of it since. */
  readonly #doubtsMs = new Map<string, number>();
  /** Until when a service has asked a process to rest, and since when, by what was asked for. */
  readonly #rests = new Map<string, { readonly sinceMs: number; readonly untilMs: number }>();
  /** The same by service, whoever said so to whom. */
  readonly #restsMs = new Map<number, number>();
  #kills = 0;
  readonly #refusedMessages = new Set<string>();
  /** When checksums of another file were given, and to whom. */
  readonly falseSums: { readonly transferId: string; readonly process: Process; readonly atMs: number }[] =
    [];
  /** Passwords of which a process knows that they are refused. */
  refusals = 0;
  readonly #tokenRefusalsMs = new Map<string, readonly number[]>();
  /** When a transfer was first asked for, by transfer-id: it was discovered before. */
  readonly firstAskedMs = new Map<string, number>();
  /** When the whole list of an address was last read. */
  readonly listedMs = new Map<string, number>();
  readonly #lists: { readonly address: string; readonly atMs: number }[] = [];

  constructor(world: World) {
    this.#world = world;
  }

  arrived(request: Request): void {
    const { trackingId, transferId, operation, address = "", atMs } = request;
    this.#checkSecrets(request);
    this.#checkRest(request);
    if (operation === "list") this.#lists.push({ address, atMs });
    const transfer = this.#world.observer.received.get(transferId ?? "")?.transfer;
    if (trackingId === undefined || transfer === undefined) return;
    if (!this.firstAskedMs.has(transferId ?? "")) this.firstAskedMs.set(transferId ?? "", atMs);
    const attempts = this.#attemptsOf(trackingId);
    this.#checkLock(attempts, request);
    this.#checkBrowser(attempts, request);
    this.#checkEnd(request);
    if (operation === "file" || operation === "zip") this.#checkSize(transfer, request);
    if (request.password !== undefined) this.#checkAttempt(attempts, transfer, request, request.password);
  }

  /** What is larger than the limits is not even received, unless a person wants it. No list makes it smaller. */
  #checkSize({ files, trackingId }: StoredTransfer, { transferId }: Request): void {
    const { observer } = this.#world;
    const bytes = files.reduce((sum, file) => sum + file.bytes.length, 0);
    const isWithin = observer.timeline.some(
      ({ site: { maxFiles = 1_000, maxBytes = 1_000_000 } }) => files.length <= maxFiles && bytes <= maxBytes,
    );
    const isWanted = observer.orders.some(
      ({ act, record }) => act === "release" && record.transferId === transferId,
    );
    if (!isWithin && !isWanted)
      this.#violate(`I8: ${trackingId} is received, and is larger than the limits allow`);
  }

  #checkAttempt(attempts: Attempts, transfer: StoredTransfer, request: Request, password: string): void {
    const { trackingId, operation, process, service, atMs } = request;
    this.#checkMode(transfer, request);
    if (attempts.proven.has(provenAt(request, password))) return;
    // Something else than the proof of a password, before it is proven.
    if (operation !== "information")
      this.#violate(`I3: ${trackingId} got ${operation} with an unproven password`);
    const refusedMs = attempts.refusedMs.get(password);
    if (refusedMs !== undefined && !this.#mayHaveForgotten(refusedMs)) {
      this.#violate(`I3: a refused password was sent again for ${trackingId}`);
    }
    const isAlone = ![...attempts.open].some((each) => each.process === process && each.service === service);
    if (!isAlone && !process.isDead)
      this.#violate(`I3: two passwords were on their way for ${trackingId} at once`);
    const doubtMs = this.#doubtsMs.get(`${process.name} ${service}`) ?? Number.POSITIVE_INFINITY;
    if (atMs > doubtMs + SECOND_MS) {
      this.#violate(
        `I3: a password was sent for ${trackingId} after an unknown verdict, before its service had answered`,
      );
    }
    attempts.open.add(request);
  }

  answered(request: Request): void {
    const { trackingId, password, operation, process, service, answered } = request;
    // Also the verdict on another attempt that was on its way.
    if (answered === "own") this.#doubtsMs.delete(`${process.name} ${service}`);
    const isGood = answered === "own" && request.status === 200;
    if (isGood && operation === "list")
      this.listedMs.set(`${service} ${request.address?.toLowerCase()}`, this.#nowMs);
    if (!isGood && request.verdict !== "locked") this.#learnRest(request);
    if (operation === "token" && request.status === 429 && request.mood === undefined)
      this.#checkPace(request);
    if (trackingId === undefined) return;
    if (operation === "eml" && !isGood) this.#refusedMessages.add(trackingId);
    const { transferId = "" } = request;
    if (isGood && request.isFalse) this.falseSums.push({ transferId, process, atMs: this.#nowMs });
    const attempts = this.#attempts.get(trackingId);
    if (attempts !== undefined && password !== undefined) this.#learnVerdict(attempts, request, password);
  }

  /** A process learns how often a service gives tokens, with few refusals. */
  #checkPace({ process, service }: Request): void {
    const key = `${process.name} ${service}`;
    const before = this.#tokenRefusalsMs.get(key) ?? [];
    const recent = [...before.filter((ms) => ms > this.#nowMs - 10 * 60 * SECOND_MS), this.#nowMs];
    this.#tokenRefusalsMs.set(key, recent);
    if (recent.length === MOST_TOKEN_REFUSALS + 1)
      this.#violate(`I6: service ${service} has refused ${recent.length} tokens to one process`);
  }

  #learnVerdict(attempts: Attempts, request: Request, password: string): void {
    const { trackingId = "", transferId = "", process, service, answered, verdict } = request;
    const isOwn = answered === "own";
    const wasSpent = attempts.spent > attempts.forgotten;
    if (!isOwn) attempts.isDoubtful = true;
    if (verdict === "unsupported" && isOwn) attempts.unsupportedMs.set(transferId, this.#nowMs);
    if (verdict === "locked" && isOwn) {
      const seconds = request.retryAfter === undefined ? 0 : Number(request.retryAfter);
      const untilMs = this.#nowMs + Math.min(Math.max(seconds * SECOND_MS, LEAST_LOCK_MS), LONGEST_LOCK_MS);
      attempts.locks.set(transferId, { knownMs: this.#nowMs, untilMs });
    }
    if (!attempts.open.delete(request)) return;
    if (isOwn && verdict === "accepted") return void attempts.proven.add(provenAt(request, password));
    if (isOwn && verdict === "refused") {
      this.refusals++;
      attempts.refusedMs.set(password, this.#nowMs);
    }
    if (!isOwn) this.#doubtsMs.set(`${process.name} ${service}`, this.#nowMs);
    // After a refusal or an unknown verdict, a lock may be the verdict on this attempt.
    const mayBeVerdict = verdict === "refused" || verdict === "deleted" || (verdict === "locked" && wasSpent);
    if (!isOwn || mayBeVerdict) this.#spend(attempts, trackingId);
  }

  /** A process that was killed, or whose answer never came, knows no verdict. */
  forgot(process: Process): void {
    for (const [trackingId, attempts] of this.#attempts) {
      for (const request of attempts.open) {
        if (request.process !== process) continue;
        attempts.open.delete(request);
        this.#spend(attempts, trackingId);
      }
    }
  }

  killed(process: Process): void {
    this.#kills++;
    this.forgot(process);
  }

  /** What was spent before a delivery counts no longer. */
  delivered(trackingId: string): void {
    const attempts = this.#attempts.get(trackingId);
    if (attempts !== undefined) Object.assign(attempts, { spent: 0, forgotten: 0 });
  }

  /** As many attempts as records tell of, by tracking-id. */
  get recorded(): ReadonlyMap<string, number> {
    return new Map(Array.from(this.#attempts, ([id, { spent, forgotten }]) => [id, spent - forgotten]));
  }

  /** The records are those of an earlier moment, or of none. */
  recordsLost(earlier: ReadonlyMap<string, number>): void {
    for (const [id, attempts] of this.#attempts)
      attempts.forgotten = Math.max(0, attempts.spent - (earlier.get(id) ?? 0));
  }

  hasRefusedMessage({ trackingId }: { readonly trackingId: string }): boolean {
    return this.#refusedMessages.has(trackingId);
  }

  /** Whether attempts were refused, or may have an unknown verdict. */
  hasSpentOn(trackingId: string): boolean {
    const { spent = 0, isDoubtful = false } = this.#attempts.get(trackingId) ?? {};
    // A killed process may have been about to spend it.
    const isLastPerhaps = this.#kills >= (this.#world.site.passwordAttempts ?? 2);
    return spent > 0 || isDoubtful || isLastPerhaps;
  }

  /** How many attempts nobody can know of. */
  forgottenOn(trackingId: string): number {
    return this.#attempts.get(trackingId)?.forgotten ?? 0;
  }

  /** How often the list of an address was asked for since then, page by page. */
  listsSince(address: string, ms: number): number {
    return this.#lists.filter((each) => each.atMs >= ms && each.address.toLowerCase() === address).length;
  }

  #spend(attempts: Attempts, trackingId: string): void {
    attempts.spent++;
    const { observer } = this.#world;
    const budget = Math.max(...observer.timeline.map(({ site }) => site.passwordAttempts ?? 2));
    const isGrant = (order: { act: string; record: { trackingId: string } }) =>
      order.act === "grant" && order.record.trackingId === trackingId;
    const allowed = budget + observer.orders.filter(isGrant).length;
    const spent = attempts.spent - attempts.forgotten;
    if (spent > allowed)
      this.#violate(`I3: ${spent} attempts were spent on ${trackingId}, and ${allowed} are allowed`);
  }

  #attemptsOf(trackingId: string): Attempts {
    const attempts = this.#attempts.get(trackingId) ?? new Attempts();
    this.#attempts.set(trackingId, attempts);
    return attempts;
  }

  /** A crash right after the answer, or a disk that fails, may have kept it from being recorded. */
  #mayHaveForgotten(atMs: number): boolean {
    return this.#world.calm.wasDisturbed(atMs - RECORD_MS);
  }

  /** Each secret goes to the service, the address and the transfer that it is for. */
  #checkSecrets({ service, clientId, token, address, password, trackingId }: Request): void {
    if (clientId !== undefined && clientId !== CLIENT_IDS[service])
      this.#violate(`I4: service ${service} got the client id of another one`);
    if (token !== undefined && address !== undefined && !this.#world.isTokenOf(service, address, token)) {
      this.#violate(`I4: the token of another address or service was sent for ${address}`);
    }
    if (password === undefined) return;
    const isForOther = this.#world.supplying.has(`${1 - service} ${trackingId} ${password}`);
    const isForThis =
      this.#world.supplying.has(`${service} ${trackingId} ${password}`) ||
      password === RULE_PASSWORDS[service];
    if (password === RULE_PASSWORDS[1 - service] || (isForOther && !isForThis))
      this.#violate(`I4: service ${service} got a password that belongs to another one, for ${trackingId}`);
  }

  /** In another mode than one-time passwords, only a password that a person supplies for this transfer is sent. */
  #checkMode({ trackingId, securityMode, state, service }: StoredTransfer, { password }: Request): void {
    const isSupplied = this.#world.supplying.has(`${service} ${trackingId} ${password}`);
    const hasModes = this.#world.services[service]?.habits.hasNoModes !== true;
    if (securityMode !== undefined && !isSupplied && hasModes) {
      this.#violate(`I3: ${trackingId} got a password by itself in the mode ${securityMode}`);
    }
    if (state === "processing") this.#violate(`I3: ${trackingId} got a password before it was active`);
  }

  /** A lock is the service's own time: nobody asks before it is over, unless a person wants that. */
  #checkLock({ locks }: Attempts, request: Request): void {
    const { trackingId, transferId, atMs } = request;
    const { knownMs = 0, untilMs = 0 } = locks.get(transferId ?? "") ?? {};
    if (atMs >= untilMs - 2 * SECOND_MS || atMs <= knownMs + 2 * SECOND_MS) return;
    if (!this.#isWantedSince(request, knownMs))
      this.#violate(`I3: ${trackingId} is locked, and was asked for before its time`);
  }

  /** What only a browser opens is left alone, unless a person wants something else. */
  #checkBrowser({ unsupportedMs }: Attempts, request: Request): void {
    const knownMs = unsupportedMs.get(request.transferId ?? "") ?? Number.POSITIVE_INFINITY;
    if (request.atMs > knownMs + 2 * SECOND_MS && !this.#isWantedSince(request, knownMs))
      this.#violate(`I3: ${request.trackingId} opens only in a browser, and was asked for again`);
  }

  /** Whether a person may have ordered a request, or supplied its password, or nobody may know what the service said. */
  #isWantedSince({ trackingId }: Request, knownMs: number): boolean {
    const { observer, calm } = this.#world;
    const isWanted = observer.orders.some(
      (order) => order.record.trackingId === trackingId && order.atMs >= knownMs - SECOND_MS,
    );
    const isSupplied = observer.supplies.some(
      (each) => each.record.trackingId === trackingId && each.atMs >= knownMs - TAKEN_UP_MS,
    );
    return isWanted || isSupplied || calm.wasDisturbed(knownMs - RECORD_MS);
  }

  /** Nothing is asked for once a round has ended, and no other has begun. */
  #checkEnd({ trackingId, transferId, atMs, process }: Request): void {
    const { observer, calm } = this.#world;
    const key = observer.received.get(transferId ?? "")?.key ?? "";
    const end = observer.ends.get(key);
    if (end === undefined || end.atMs > atMs - END_KNOWN_MS || process.frozenUntilMs > end.atMs) return;
    const isOrdered = observer.orders.some((order) => order.key === key && order.act !== "discard");
    const isListedAgain = (end.state === "gone" && end.reason !== "discarded") || this.#world.hasLost;
    if (!isOrdered && !isListedAgain && !calm.wasDisturbed(end.atMs - RECORD_MS) && this.#world.hasNoEdits)
      this.#violate(`I7: ${trackingId} is asked for after it was ${end.state}`);
  }

  /** The service asks for fewer requests: the process begins nothing there before the time is over. */
  #learnRest({ process, service, operation, retryAfter, answered, errorCode }: Request): void {
    const seconds = Number(retryAfter);
    if (!(seconds >= 20) || operation === "token") return;
    const untilMs = this.#nowMs + Math.min(seconds * SECOND_MS, HOUR_MS);
    this.#restsMs.set(service, Math.max(this.#restsMs.get(service) ?? 0, untilMs));
    // What a proxy asks for may be kept, and need not be.
    if (answered !== "own" || errorCode !== 2007) return;
    const area = operation === "list" ? "list" : "information";
    this.#rests.set(`${process.name} ${service} ${area}`, { sinceMs: this.#nowMs, untilMs });
  }

  /** For how long a service has rested, as this process knows since then; 0 if it does not. */
  restedMs({ name }: Process, service: number, sinceMs: number): number {
    const rests = ["list", "information"].flatMap(
      (area) => this.#rests.get(`${name} ${service} ${area}`) ?? [],
    );
    const lasting = rests.filter((rest) => rest.untilMs > this.#nowMs + SECOND_MS && rest.sinceMs > sinceMs);
    return Math.max(0, ...lasting.map((rest) => this.#nowMs - rest.sinceMs));
  }

  /** Until when a service, or a proxy, has asked any process to rest: those of a fleet tell each other. */
  restedUntilMs(service: number): number {
    return this.#restsMs.get(service) ?? 0;
  }

  #checkRest({ process, service, operation, atMs, trackingId = "" }: Request): void {
    const rest = this.#rests.get(`${process.name} ${service} ${operation}`);
    if (rest === undefined || atMs < rest.sinceMs + 5 * SECOND_MS || atMs > rest.untilMs - 2 * SECOND_MS)
      return;
    const { observer, calm } = this.#world;
    const isWanted = observer.orders.length > 0 || observer.supplies.length > 0;
    if (
      !isWanted &&
      !calm.wasDisturbed(rest.sinceMs - RECORD_MS) &&
      this.#world.hasNoEdits &&
      this.#world.plan.isCron !== true
    )
      this.#violate(`I6: ${operation} ${trackingId} is asked for while its service rests`);
  }

  #violate(text: string): void {
    this.#world.observer.violate(text);
  }

  get #nowMs(): number {
    return this.#world.schedule.nowMs;
  }
}

/** Another spelling of the address may be that of another service, where the same password is a guess. */
function provenAt({ origin, path }: Request, password: string): string {
  return `${origin}${path.slice(0, path.indexOf("/api/"))} ${password}`;
}
