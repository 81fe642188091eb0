// Entry point of the code with which a node joins a cluster and keeps its credentials.
export { caPinOf } from './discover-ca.ts'
export { joinCluster } from './join-cluster.ts'
export { loadCredentials, type NodeCredentials, nodeKubeconfigPath } from './node-credentials.ts'
export { ensureServingCertificate } from './serving-certificate.ts'
