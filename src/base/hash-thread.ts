/** Hashes large contents on a thread of their own, so that the one that receives and writes them does not wait. */
import { extname } from "node:path";
import { Worker } from "node:worker_threads";
import type { HashAnswer, HashRequest } from "./hash-worker.ts";

/** So much may be on its way to the thread before whoever brings more has to wait. */
const MOST_WAITING_BYTES = 2 * 1024 * 1024;
/** The thread and its memory go when nobody has needed them for so long. */
const IDLE_MS = 10_000;
const LIMITS = { maxOldGenerationSizeMb: 32, maxYoungGenerationSizeMb: 4 };

export interface ThreadHash {
  /** The chunk stays as it is until `onHashed` was called. Resolves when there is room for more. */
  update(chunk: Uint8Array, onHashed: () => void): Promise<void>;
  /** By algorithm. Nothing follows. Has to be called, if only for the thread to forget it. */
  finish(): Promise<ReadonlyMap<string, Uint8Array>>;
}

interface Open {
  readonly waiting: { readonly bytes: number; readonly onHashed: () => void }[];
  waitingBytes: number;
  hear: (() => void) | undefined;
  digests: ReadonlyMap<string, Uint8Array> | undefined;
  failure: Error | undefined;
}

let thread: Worker | undefined;
let idle: NodeJS.Timeout | undefined;
let lastId = 0;
const open = new Map<number, Open>();

/** `algorithms` as Node names them. */
export function startThreadHash(algorithms: readonly string[]): ThreadHash {
  const id = ++lastId;
  const own: Open = { waiting: [], waitingBytes: 0, hear: undefined, digests: undefined, failure: undefined };
  open.set(id, own);
  clearTimeout(idle);
  thread ??= startThread();
  thread.ref();
  const ask = (request: HashRequest) => thread?.postMessage(request);
  const news = async () => {
    await new Promise<void>((resolve) => {
      own.hear = resolve;
    });
    if (own.failure !== undefined) throw own.failure;
  };
  ask({ id, algorithms });
  return {
    async update(chunk, onHashed) {
      if (own.failure !== undefined) throw own.failure;
      own.waiting.push({ bytes: chunk.byteLength, onHashed });
      own.waitingBytes += chunk.byteLength;
      ask({ id, chunk });
      while (own.waitingBytes > MOST_WAITING_BYTES) await news();
    },
    async finish() {
      if (own.failure !== undefined) throw own.failure;
      ask({ id });
      while (own.digests === undefined) await news();
      return own.digests;
    },
  };
}

function startThread(): Worker {
  // In a checkout it is TypeScript, where installed JavaScript.
  const file = new URL(`./hash-worker${extname(import.meta.url)}`, import.meta.url);
  const started = new Worker(file, { name: "hash", resourceLimits: LIMITS });
  started.on("message", (answer: HashAnswer) => hear(answer));
  started.on("error", (error: Error) => end(started, error));
  started.on("exit", () => end(started, new Error("the thread that hashes has ended")));
  return started;
}

function hear({ id, digests }: HashAnswer): void {
  const own = open.get(id);
  if (own === undefined) return;
  if (digests === undefined) {
    const hashed = own.waiting.shift();
    own.waitingBytes -= hashed?.bytes ?? 0;
    hashed?.onHashed();
  } else {
    own.digests = digests;
    forget(id);
  }
  own.hear?.();
}

/** Whatever was begun there cannot be finished; the next one starts another thread. */
function end(ended: Worker, error: Error): void {
  if (thread !== ended) return;
  thread = undefined;
  for (const [id, own] of open) {
    own.failure = error;
    forget(id);
    own.hear?.();
  }
}

function forget(id: number): void {
  open.delete(id);
  if (open.size > 0) return;
  // It is no reason for the process to stay.
  thread?.unref();
  idle = setTimeout(() => {
    const unused = thread;
    thread = undefined;
    void unused?.terminate();
  }, IDLE_MS).unref();
}
