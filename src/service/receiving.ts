/**
 * One request and its answer, through undici's dispatch handler. undici's own body streams would discard all unread bytes
 * when a connection breaks, and do not report when a request is sent.
 */
import type { IncomingHttpHeaders } from "node:http";
import type { Dispatcher } from "undici";
import { returnChunk } from "../base/blocks.ts";
import { MAX_INTERIM_ANSWERS } from "../base/bounds.ts";
import { nextTurn } from "../base/timers.ts";
import { foreignAnswer } from "./answers.ts";

const MIN_LARGE_BYTES = 64 * 1024;
/** The connection pauses while this many bytes wait for the reader. */
const MAX_WAITING_BYTES = 1024 * 1024;

export interface Answer {
  readonly statusCode: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: AnswerBody;
}

/** Can be read once. A reader that stops before the end cancels it. */
export interface AnswerBody extends AsyncIterable<Uint8Array> {
  /** Closes the connection, unless the whole answer has arrived. */
  cancel(): void;
  /** Calls once the answer has arrived, failed or was cancelled, with the bytes that arrived. */
  whenEnded(call: (bytes: number) => void): void;
}

/**
 * Resolves with the head of the answer. `signal` aborts the request at any time, also while its body is read. `onSending` is
 * called before the first byte of the request is sent.
 */
export function receive(
  dispatcher: Dispatcher,
  options: Dispatcher.DispatchOptions,
  signal: AbortSignal,
  onSending: () => void,
): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  if (signal.aborted) {
    reject(signal.reason);
    return promise;
  }
  const receiver = new Receiver(resolve, reject, onSending);
  const onAbort = () => receiver.fail(signal.reason);
  signal.addEventListener("abort", onAbort, { once: true });
  receiver.whenEnded(() => signal.removeEventListener("abort", onAbort));
  dispatcher.dispatch(options, receiver);
  return promise;
}

class Receiver implements Dispatcher.DispatchHandler, AnswerBody {
  readonly #endListeners: ((bytes: number) => void)[] = [];
  #bytes = 0;
  #interim = 0;
  readonly #resolve: (answer: Answer) => void;
  readonly #reject: (error: unknown) => void;
  readonly #onSending: () => void;
  #controller: Dispatcher.DispatchController | undefined;
  #waiting: Uint8Array[] = [];
  #waitingBytes = 0;
  /** Missing while the answer arrives. `error`: why it was cut short. */
  #end: { readonly error?: unknown } | undefined;
  #wakeReader: (() => void) | undefined;

  constructor(resolve: (answer: Answer) => void, reject: (error: unknown) => void, onSending: () => void) {
    this.#resolve = resolve;
    this.#reject = reject;
    this.#onSending = onSending;
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#end !== undefined) this.#abort(this.#end.error);
    else this.#onSending();
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    statusCode: number,
    headers: IncomingHttpHeaders,
  ): void {
    // Statuses below 200 are informational: the answer follows.
    if (statusCode >= 200) this.#resolve({ statusCode, headers, body: this });
    else if (++this.#interim > MAX_INTERIM_ANSWERS)
      this.fail(foreignAnswer("BAD_ANSWER", "informational answers without end"));
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Uint8Array): void {
    if (this.#end !== undefined) return;
    this.#waiting.push(chunk);
    this.#bytes += chunk.byteLength;
    this.#waitingBytes += chunk.byteLength;
    if (this.#waitingBytes >= MAX_WAITING_BYTES) controller.pause();
    this.#wakeReader?.();
  }

  onResponseEnd(): void {
    this.#finish({});
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.#finish({ error });
  }

  /** Unlike a broken connection, this discards all unread bytes. */
  fail(reason: unknown): void {
    if (this.#end !== undefined) return;
    this.#waiting = [];
    this.#finish({ error: reason });
    this.#abort(reason);
  }

  cancel(): void {
    // An `Error` costs as much as a small request, so none is made for an answer that has ended.
    if (this.#end === undefined) this.fail(new Error("the answer was not read to its end"));
  }

  whenEnded(call: (bytes: number) => void): void {
    if (this.#end === undefined) this.#endListeners.push(call);
    else call(this.#bytes);
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array, void, undefined> {
    try {
      for (;;) {
        const [first] = this.#waiting;
        if (first !== undefined) yield this.#takeChunk(first);
        else if (this.#end === undefined) await this.#untilMore();
        else if ("error" in this.#end) throw this.#end.error;
        else return;
      }
    } finally {
      this.cancel();
    }
  }

  /** Joins small pieces, such as TLS records through a proxy: large chunks are processed far faster than small ones. */
  #takeChunk(first: Uint8Array): Uint8Array {
    const pieces = first.byteLength >= MIN_LARGE_BYTES ? [first] : this.#waiting;
    const chunk = pieces.length === 1 ? first : Buffer.concat(pieces);
    // The copy replaces the pieces, so their memory can be used again.
    if (chunk !== first) for (const piece of pieces) returnChunk(piece);
    this.#waiting = this.#waiting.slice(pieces.length);
    this.#waitingBytes -= chunk.byteLength;
    if (this.#controller?.paused) this.#controller.resume();
    return chunk;
  }

  /** Waits for the next bytes, and for all others that have arrived by then. */
  async #untilMore(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#wakeReader = resolve;
    });
    this.#wakeReader = undefined;
    if (this.#end === undefined) await nextTurn();
  }

  #finish(end: { readonly error?: unknown }): void {
    if (this.#end !== undefined) return;
    this.#end = end;
    for (const call of this.#endListeners) call(this.#bytes);
    if ("error" in end) this.#reject(end.error);
    this.#wakeReader?.();
  }

  #abort(reason: unknown): void {
    this.#controller?.abort(reason instanceof Error ? reason : new Error(String(reason)));
  }
}
