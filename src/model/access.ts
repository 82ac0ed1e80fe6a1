/** Who may use the console and its API. */

/** What a token allows. `operate` includes `read`. */
export const ROLES = ["read", "operate"] as const;

export type Role = (typeof ROLES)[number];

/** What needs a token to be read: nothing; pages and API; or also `/metrics` and `/readyz`. */
export const READ_ACCESS = ["open", "token", "token-for-all"] as const;

export type ReadAccess = (typeof READ_ACCESS)[number];
