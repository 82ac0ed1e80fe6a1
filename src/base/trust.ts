/** The certificate authorities that this process trusts. */
import { getCACertificates, setDefaultCACertificates } from "node:tls";

let hasReadStore = false;

/** Options for TLS. `ca`: an authority that the configuration adds. */
export function authoritiesWith(ca: string | undefined): { readonly ca?: string[] } {
  trustSystemStore();
  return ca === undefined ? {} : { ca: [...getCACertificates("default"), ca] };
}

/** Trusts, besides Node's own list, the store of the system, where companies put their authority. Reads it once. */
function trustSystemStore(): void {
  if (hasReadStore) return;
  hasReadStore = true;
  const known = [...getCACertificates("default"), ...getCACertificates("system")];
  setDefaultCACertificates([...new Set(known)]);
}
