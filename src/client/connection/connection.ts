// Where an API server is and how to be let in: what kubeconfig.ts and in-cluster.ts find out, and http-client.ts uses.

export interface Connection {
  /** `https://10.0.0.1:6443`, perhaps with a path below which the API lies; `http://` is for tests and proxies. */
  readonly server: string
  /** PEM of who vouches for the server; absent: those the system trusts. */
  readonly ca?: string
  /** Takes anyone for the server. */
  readonly insecure?: boolean
  /** The name in the server's certificate, where it is not the host. */
  readonly serverName?: string
  /** Asked before every request; whatever is costly is remembered inside. */
  credentials(): Promise<Credentials>
  /** The server refused these (401): whatever was remembered is to be fetched anew. */
  forgetCredentials?(): void
}

export interface Credentials {
  readonly token?: string
  /** PEM. */
  readonly cert?: string
  readonly key?: string
}
