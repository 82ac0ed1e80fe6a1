/** Who may act in the console: its tokens and sessions. */
import { createHash } from "node:crypto";
import { hostname } from "node:os";
import type { Clock } from "../base/clock.ts";
import type { SecretSource } from "../base/secret.ts";
import type { ConsoleActions } from "../console/port.ts";
import { Sessions, type Tokens } from "../console/sessions.ts";
import type { LiveSettings } from "./live-settings.ts";

/** The source of a token may be a command, so tokens are read no more often than this. */
const READ_EVERY_MS = 2_000;

/** `undefined` if the console is read-only. */
export async function openActions(
  live: LiveSettings,
  clock: Clock,
  stop: AbortSignal,
): Promise<ConsoleActions | undefined> {
  const { http, inbox } = live.now;
  if (http?.actions !== true) return undefined;
  const daemon = JSON.stringify([hostname(), http.listen, inbox]);
  const cookie = createHash("sha256").update(daemon).digest("hex").slice(0, 12);
  const needsToken = !("path" in http.listen) || http.tokens.size > 0;
  const tokens = needsToken ? await readTokens(http.tokens, stop) : undefined;
  const sessions = new Sessions({ tokens, cookie, clock });
  return {
    sessions,
    renew: needsToken
      ? createTokenReader(live, (read) => sessions.renew(read), clock, stop)
      : async () => true,
  };
}

async function readTokens(sources: ReadonlyMap<string, SecretSource>, stop: AbortSignal): Promise<Tokens> {
  const read = [...sources].map(async ([name, source]) => [name, await source.read(stop)] as const);
  return new Map(await Promise.all(read));
}

interface Reading {
  readonly sources: ReadonlyMap<string, SecretSource>;
  readonly atMs: number;
  readonly isRead: Promise<boolean>;
}

/**
 * Returns a function that reads the tokens again from their present sources, unless that was done a moment ago. It
 * resolves to false if one cannot be read; the caller then accepts no token.
 */
function createTokenReader(
  live: LiveSettings,
  onRead: (tokens: Tokens) => void,
  clock: Clock,
  stop: AbortSignal,
): () => Promise<boolean> {
  let last: Reading | undefined;
  return async () => {
    const sources = live.now.http?.tokens ?? new Map();
    const atMs = clock.now();
    if (last?.sources !== sources || Math.abs(atMs - last.atMs) >= READ_EVERY_MS) {
      const isRead = readTokens(sources, stop).then(
        (tokens) => {
          onRead(tokens);
          return true;
        },
        () => false,
      );
      last = { sources, atMs, isRead };
    }
    return last.isRead;
  };
}
