/** Addresses that the service sends and people may see. A file's is never one of them: it may carry the password. */

/** What a query may name that gives access to something. */
const SECRET = /pass|pwd|token|secret|client-?id|code|auth|api-?key/i;

/** Without its query where that may hold a secret, and without a user and password before the host. */
export function publicHref(href: string): string {
  const plain = href.replace(/^([a-z][a-z0-9+.-]*:)?\/\/[^/?#]*@/i, "$1//");
  const at = plain.search(/[?#]/);
  return at >= 0 && mayHoldSecret(plain.slice(at)) ? plain.slice(0, at) : plain;
}

function mayHoldSecret(query: string): boolean {
  try {
    return SECRET.test(decodeURIComponent(query));
  } catch {
    return true;
  }
}
