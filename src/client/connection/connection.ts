// The address of an API server and the credentials for it.

export interface Connection {
  /** The URL, such as `https://10.0.0.1:6443`, optionally with a path prefix; `http://` is for tests and proxies. */
  readonly server: string
  /** The CA certificates of the server as PEM. Default: those of Node.js. */
  readonly ca?: string
  /** Whether to skip the verification of the server's certificate. */
  readonly insecure?: boolean
  /** The name in the server's certificate, if it differs from the host. */
  readonly serverName?: string
  /** Called before every request. */
  credentials(): Promise<Credentials>
  /** Called after a 401 response. Removes cached credentials. */
  invalidateCredentials?(): void
}

export interface Credentials {
  readonly token?: string
  /** Client certificate and key as PEM. */
  readonly cert?: string
  readonly key?: string
}
