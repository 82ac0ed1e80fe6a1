/**
 * The state of one channel, as this process knows it. Changes are applied at once, and saved soon. If another process has
 * saved meanwhile, the unsaved changes are applied again, to the newer state.
 */
import { Coalesced } from "../base/concurrency.ts";
import type { ChannelState } from "./state.ts";
import type { StateFiles } from "./state-files.ts";

/** Must depend on nothing but the state, and may be applied more than once. */
type Change = (state: ChannelState) => void;

/** Changes that are kept while nothing can be saved. Further changes are applied, but may be lost. */
const MAX_UNSAVED = 50_000;
/** A failed try means that another process has saved in between. */
const MAX_TRIES = 1_000;

export interface SharedStateOptions {
  readonly files: StateFiles;
  /** Other processes use the files too. */
  readonly isShared: boolean;
  readonly saveAfterMs: number;
  makeState(snapshot?: ReturnType<ChannelState["snapshot"]>): ChannelState;
  /** The state has changed. */
  onChanged(): void;
}

export class SharedState {
  readonly #options: SharedStateOptions;
  readonly #saving: Coalesced;
  #state: ChannelState;
  #savedRevision: number;
  readonly #unsaved: Change[] = [];
  /** How many of the unsaved changes are in the last file that this process tried to write. */
  #written = 0;

  constructor(options: SharedStateOptions) {
    this.#options = options;
    this.#saving = new Coalesced(() => this.#save(), options.saveAfterMs);
    this.#state = options.makeState();
    this.#savedRevision = this.#state.revision;
  }

  /** Identifies this process. */
  get token(): string {
    return this.#options.files.token;
  }

  get state(): ChannelState {
    return this.#state;
  }

  change(change: Change): void {
    const { isShared, onChanged } = this.#options;
    const before = this.#state.revision;
    change(this.#state);
    const isChanged = this.#state.revision !== before;
    if (isChanged) onChanged();
    // A change without effect here may have one on a state that another process has saved since.
    if (!isChanged && !isShared) return;
    if (this.#unsaved.length < MAX_UNSAVED) this.#unsaved.push(change);
    this.#saving.schedule();
  }

  /** Resolves when all changes so far are saved, or could not be. */
  save(): Promise<void> {
    return this.#saving.run();
  }

  /**
   * Applies a change, saves it, and returns its result on the saved state. If it cannot be saved, it is not kept as an
   * unsaved change: on a newer state, it could have another result than the returned one.
   */
  async run<Result>(change: (state: ChannelState) => Result): Promise<Result> {
    let result = change(this.#state);
    const apply = (state: ChannelState) => {
      result = change(state);
    };
    this.#unsaved.push(apply);
    await this.save();
    const at = this.#unsaved.indexOf(apply);
    if (at >= 0) this.#unsaved.splice(at, 1);
    if (at >= 0 && at < this.#written) this.#written--;
    return result;
  }

  /** A failure is not reported: the next save may succeed, and at worst a message is sent again. */
  async #save(): Promise<void> {
    try {
      for (let tries = 0; tries < MAX_TRIES && !(await this.#trySave()); tries++);
    } catch {
      // See above.
    }
  }

  /** False if another process was faster. */
  async #trySave(): Promise<boolean> {
    const { files, makeState, onChanged } = this.#options;
    const found = await files.readNewer();
    if (found !== undefined) {
      if (found.hasOurs) this.#unsaved.splice(0, this.#written);
      this.#written = 0;
      this.#state = makeState(found.state);
      this.#savedRevision = this.#state.revision;
      for (const change of this.#unsaved) change(this.#state);
      onChanged();
    }
    const { revision } = this.#state;
    this.#written = this.#unsaved.length;
    if (revision !== this.#savedRevision && !(await files.write(this.#state.snapshot()))) return false;
    this.#savedRevision = revision;
    this.#unsaved.splice(0, this.#written);
    this.#written = 0;
    return true;
  }
}
