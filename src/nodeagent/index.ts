// The public names of the node agent.
export { createNodeAgent, type NodeAgent, type NodeAgentDeps } from './agent.ts'
export type { ExpandVolume, PublishedVolume } from './csi/expand-volume.ts'
export { type AgentMetrics, createAgentMetrics } from './metrics.ts'
export { NodeNameTakenError } from './node/node-heartbeat.ts'
export { type NodeAgentOptions, type RunningNodeAgent, startNodeAgent } from './start-agent.ts'
