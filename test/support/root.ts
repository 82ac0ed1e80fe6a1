/** Where the checkout stands. Apart, for processes that have no test runner. */
import { resolve } from "node:path";

export const ROOT = resolve(import.meta.dirname, "../..");
