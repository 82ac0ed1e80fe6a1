/** Things that have to be closed, newest first, whatever happens. */
export class Scope implements AsyncDisposable {
  readonly #closers: (() => unknown)[] = [];

  /** Remembers how to close something, and hands it back. */
  use<Thing>(thing: Thing, close: (thing: Thing) => unknown): Thing {
    this.#closers.push(() => close(thing));
    return thing;
  }

  /** Closes everything, also where closing something fails; the first failure is thrown in the end. */
  async [Symbol.asyncDispose](): Promise<void> {
    const failures: unknown[] = [];
    for (const close of this.#closers.splice(0).reverse()) {
      try {
        await close();
      } catch (error) {
        failures.push(error);
      }
    }
    if (failures.length > 0) throw failures[0];
  }
}
