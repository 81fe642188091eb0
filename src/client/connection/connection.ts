// The address of an API server and the credentials for it. kubeconfig.ts and in-cluster.ts create a Connection;
// ../http/transport.ts uses it.

export interface Connection {
  /** `https://10.0.0.1:6443`, optionally with a path prefix; `http://` is for tests and proxies. */
  readonly server: string
  /** PEM of the CA of the server; absent: the CAs of the system. */
  readonly ca?: string
  /** Do not verify the certificate of the server. */
  readonly insecure?: boolean
  /** The name in the certificate of the server, if it is not the host. */
  readonly serverName?: string
  /** Called before every request; the implementation caches. */
  credentials(): Promise<Credentials>
  /** Called after a 401: drops cached credentials. */
  forgetCredentials?(): void
}

export interface Credentials {
  readonly token?: string
  /** PEM. */
  readonly cert?: string
  readonly key?: string
}
