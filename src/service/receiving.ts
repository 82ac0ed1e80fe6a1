/**
 * One request and its answer, as undici hands them over: piece by piece, in the order in which they come. What has come is
 * kept for whoever reads it, also where the connection breaks after it. Of a large body the pieces are put together into
 * blocks, because every piece that is passed on costs the same, however small it is.
 */
import type { IncomingHttpHeaders } from "node:http";
import type { Dispatcher } from "undici";
import { BLOCK_BYTES, fillBlock, giveBack, passOn, takeBlock } from "../base/blocks.ts";

/** So much of a body may wait for its reader before the service has to. */
const MOST_WAITING_BYTES = 1024 * 1024;
/** What is smaller is passed on as it comes. */
const SMALL_BODY_BYTES = 64 * 1024;
/** A piece of that size is worth its passing on. */
const LARGE_PIECE_BYTES = 64 * 1024;

export interface Answer {
  readonly statusCode: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: AnswerBody;
}

/** Can be read once. Whoever does not read it to its end cancels it. */
export interface AnswerBody extends AsyncIterable<Uint8Array> {
  /** Ends the connection, unless all has come. */
  cancel(): void;
}

/** Ends a request, and the reading of its body. */
export type End = (reason: unknown) => void;

export interface Steps {
  /** Gets what ends the request. */
  onBegun(end: End): void;
  /** Called before the first byte of the request is sent. */
  onSent(): void;
}

/** Resolves when the head of the answer is there. `signal` ends it at any time, its body too. */
export function receive(
  dispatcher: Dispatcher,
  options: Dispatcher.DispatchOptions,
  signal: AbortSignal,
  { onBegun, onSent }: Steps,
): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  if (signal.aborted) {
    reject(signal.reason);
    return promise;
  }
  const receiver = new Receiver(resolve, reject, onSent);
  const onAbort = () => receiver.fail(signal.reason);
  signal.addEventListener("abort", onAbort, { once: true });
  receiver.onOver = () => signal.removeEventListener("abort", onAbort);
  onBegun((reason) => receiver.fail(reason));
  dispatcher.dispatch(options, receiver);
  return promise;
}

class Receiver implements Dispatcher.DispatchHandler, AnswerBody {
  onOver: (() => void) | undefined;
  readonly #resolve: (answer: Answer) => void;
  readonly #reject: (error: unknown) => void;
  readonly #onSent: () => void;
  #controller: Dispatcher.DispatchController | undefined;
  /** What has come and nobody has read yet. */
  #waiting: Uint8Array[] = [];
  #waitingBytes = 0;
  #receivedBytes = 0;
  #block: Uint8Array | undefined;
  #blockBytes = 0;
  #passing: NodeJS.Immediate | undefined;
  #end: { readonly error?: unknown } | undefined;
  /** Wakes whoever reads. */
  #wake: (() => void) | undefined;

  constructor(resolve: (answer: Answer) => void, reject: (error: unknown) => void, onSent: () => void) {
    this.#resolve = resolve;
    this.#reject = reject;
    this.#onSent = onSent;
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#end !== undefined) this.#stop(this.#end.error);
    else this.#onSent();
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    statusCode: number,
    headers: IncomingHttpHeaders,
  ): void {
    // Those below only announce the answer.
    if (statusCode >= 200) this.#resolve({ statusCode, headers, body: this });
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Uint8Array): void {
    if (this.#end !== undefined) return;
    this.#receivedBytes += chunk.byteLength;
    if (this.#receivedBytes <= SMALL_BODY_BYTES) {
      this.#pass(passOn(chunk));
    } else if (chunk.byteLength >= LARGE_PIECE_BYTES) {
      this.#passBlock();
      this.#pass(passOn(chunk));
    } else {
      this.#collect(chunk);
    }
    if (this.#waitingBytes >= MOST_WAITING_BYTES) this.#controller?.pause();
  }

  onResponseEnd(): void {
    this.#passBlock();
    this.#finish({});
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.#passBlock();
    this.#finish({ error });
  }

  /** What has come before stays readable only where the connection broke: here nobody wants it. */
  fail(reason: unknown): void {
    if (this.#end !== undefined) return;
    this.#waiting = [];
    this.#finish({ error: reason });
    this.#stop(reason);
  }

  cancel(): void {
    if (this.#end === undefined) this.fail(new Error("the answer was not read to its end"));
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array, void, undefined> {
    try {
      for (;;) {
        const chunk = this.#waiting.shift();
        if (chunk !== undefined) {
          this.#waitingBytes -= chunk.byteLength;
          if (this.#waitingBytes < MOST_WAITING_BYTES && this.#controller?.paused) this.#controller.resume();
          yield chunk;
        } else if (this.#end !== undefined) {
          if ("error" in this.#end) throw this.#end.error;
          return;
        } else {
          await new Promise<void>((resolve) => {
            this.#wake = resolve;
          });
        }
      }
    } finally {
      this.cancel();
    }
  }

  #pass(chunk: Uint8Array): void {
    this.#waiting.push(chunk);
    this.#waitingBytes += chunk.byteLength;
    this.#wake?.();
  }

  /** A block goes on when it is full, or when for now nothing more comes. */
  #collect(chunk: Uint8Array): void {
    for (let at = 0; at < chunk.byteLength; ) {
      this.#block ??= takeBlock();
      const part = chunk.subarray(at, at + BLOCK_BYTES - this.#blockBytes);
      this.#block.set(part, this.#blockBytes);
      this.#blockBytes += part.byteLength;
      at += part.byteLength;
      if (this.#blockBytes === BLOCK_BYTES) this.#passBlock();
    }
    // It was copied: whatever it is a part of is free.
    giveBack(passOn(chunk));
    if (this.#blockBytes > 0) this.#passing ??= setImmediate(() => this.#passBlock());
  }

  #passBlock(): void {
    clearImmediate(this.#passing);
    this.#passing = undefined;
    if (this.#block === undefined || this.#blockBytes === 0) return;
    fillBlock(this.#block, this.#blockBytes);
    const filled = this.#block.subarray(0, this.#blockBytes);
    this.#block = undefined;
    this.#blockBytes = 0;
    this.#pass(passOn(filled));
  }

  #finish(end: { readonly error?: unknown }): void {
    if (this.#end !== undefined) return;
    this.#end = end;
    this.onOver?.();
    if ("error" in end) this.#reject(end.error);
    this.#wake?.();
  }

  #stop(reason: unknown): void {
    clearImmediate(this.#passing);
    this.#controller?.abort(reason instanceof Error ? reason : new Error(String(reason)));
  }
}
