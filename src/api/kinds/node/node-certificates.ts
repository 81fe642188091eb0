// Builds the names in the certificates with which the API server and the node agents authenticate each other.

/** Common name of the client certificate of an API server for its connections to node agents. No signer issues it on request. */
export const API_SERVER_CLIENT_NAME = 'kube-apiserver-kubelet-client'

/** Returns the DNS name in the serving certificate of a node's agent. DNS does not resolve it. */
export const nodeServingName = (nodeName: string): string => `${nodeName}.node.stowage.internal`
