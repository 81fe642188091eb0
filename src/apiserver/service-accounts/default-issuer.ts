// The default issuer of ServiceAccount tokens: the name of the API server in a cluster, which does not depend on the host.
export const DEFAULT_ISSUER = 'https://kubernetes.default.svc'
