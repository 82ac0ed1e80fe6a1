/** What the mood of a service does to one of its requests. */

import type { Random } from "../ground/random.ts";
import type { Mood, Weather } from "../plan/sent.ts";
import { type Answer, htmlPage, NOTHING, type Outcome, type RefusalName } from "./answers.ts";
import type { Operation, RequestEntry } from "./requests.ts";

/** How a service acts on a request. */
export interface Acts {
  readonly weather: Weather;
  readonly random: Random;
  /** As in fair weather, except for what `entry.mood` does to the content. */
  answer(): Answer;
  refuse(reason: RefusalName, headers?: Readonly<Record<string, string>>): Answer;
}

/** The longest pause before an answer that is late. */
const SLOW_MS = 10_000;

/** Moods that only some operations know. */
const MOOD_OPERATIONS: Readonly<Partial<Record<Mood, readonly Operation[]>>> = {
  forgetful: ["list"],
  cutting: ["list"],
  stripping: ["list"],
  lying: ["information", "files", "file", "zip", "checksums"],
};

/** Whether the connection for this request fails. */
export function isAway({ mood, scope, share }: Weather, path: string, random: Random): boolean {
  return mood === "away" && isInScope(scope, areaOf(path)) && random.chance(share);
}

export function drawMood(
  { mood, scope, share, about }: Weather,
  { operation, path }: RequestEntry,
  random: Random,
): Mood | undefined {
  if (mood === "fine" || mood === "away") return undefined;
  const limits = about === undefined ? MOOD_OPERATIONS[mood] : [about];
  const meets = isInScope(scope, areaOf(path)) && (limits === undefined || limits.includes(operation));
  return meets && random.chance(share) ? mood : undefined;
}

function areaOf(path: string): "lists" | "transfers" | undefined {
  if (path.includes("/api/users/")) return "lists";
  return path.includes("/api/transfers/") ? "transfers" : undefined;
}

function isInScope(scope: Weather["scope"], area: Weather["scope"]): boolean {
  return scope === undefined || scope === area;
}

export function outcomeOf(entry: RequestEntry, acts: Acts): Outcome {
  const { random } = acts;
  switch (entry.mood) {
    case "silent":
      return beSilent(entry, acts);
    case "dripping":
      return { entry, answer: acts.answer(), isDripping: true };
    case "slow":
      return { entry, answer: acts.answer(), delayMs: random.int(SLOW_MS) };
    case "lossy":
      return lose(entry, acts);
    case "failing":
      // The service's own word says that it has not acted. A gateway does not know.
      if (random.chance(0.5)) return { entry, answer: acts.refuse("serverFault") };
      if (random.chance(0.5)) acts.answer();
      return { entry, answer: gatewayFailure(random) };
    case "limiting":
      return { entry, answer: limit(acts) };
    case "foreign":
      return { entry, answer: htmlPage(random.pick([200, 503])) };
    case "firewall":
      return { entry, answer: htmlPage(403) };
    case "confused":
      return { entry, answer: acts.refuse(random.pick(["parameterMissing", "serverFault"])) };
    case "luring":
      return { entry, answer: lure(entry, random) };
    default:
      return { entry, answer: acts.answer() };
  }
}

function beSilent(entry: RequestEntry, { answer: act, random }: Acts): Outcome {
  const answer = random.chance(0.5) ? act() : undefined;
  if (answer?.isContent !== true || random.chance(0.5)) return { entry };
  return { entry, answer, stallsAt: Math.ceil(answer.body.length / 2) };
}

function lose(entry: RequestEntry, { answer: act, random }: Acts): Outcome {
  const place = random.pick(["before", "after", "within"]);
  if (place === "before") return { entry, cutAt: "head" };
  const answer = act();
  const isWithin = place === "within" && answer.body.length > 0;
  return { entry, answer, cutAt: isWithin ? random.int(answer.body.length) : "head" };
}

function gatewayFailure(random: Random): Answer {
  const status = random.pick([502, 503, 504]);
  return random.chance(0.7) ? htmlPage(status) : { status, headers: {}, body: NOTHING, isOwn: false };
}

function limit({ weather: { retryAfter }, random, refuse }: Acts): Answer {
  const headers = retryAfter === undefined ? undefined : { "retry-after": retryAfter };
  return random.chance(0.5) ? refuse("tooManyRequests", headers) : htmlPage(random.pick([429, 503]), headers);
}

function lure({ origin, path, query }: RequestEntry, random: Random): Answer {
  const target = random.pick(["https://lure.example", "//lure.example", origin.replace("s:", ":")]);
  const location = `${target}${path}${query === "" ? "" : `?${query}`}`;
  return { status: random.pick([302, 307]), headers: { location }, body: NOTHING, isOwn: false };
}
