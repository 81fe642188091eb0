// Public exports of joining a node to a cluster, and of the credentials of a joined node.
export { computeCaPin } from './discover-ca.ts'
export { joinCluster } from './join-cluster.ts'
export { loadCredentials, type NodeCredentials, nodeKubeconfigPath } from './node-credentials.ts'
export { ensureServingCertificate } from './serving-certificate.ts'
