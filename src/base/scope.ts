/** Closes resources in reverse order, whatever happens. */
export class Scope implements AsyncDisposable {
  readonly #closers: (() => unknown)[] = [];

  /** Registers a resource with its closer, and returns it. */
  use<Thing>(thing: Thing, close: (thing: Thing) => unknown): Thing {
    this.#closers.push(() => close(thing));
    return thing;
  }

  /** Closes everything, even after a failure; the first failure is thrown at the end. */
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
