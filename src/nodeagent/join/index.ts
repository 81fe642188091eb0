// Public exports of joining a cluster.
export { caPinOf } from './discover-ca.ts'
export { joinCluster } from './join-cluster.ts'
export { loadCredentials, type NodeCredentials, nodeKubeconfigPath } from './node-credentials.ts'
