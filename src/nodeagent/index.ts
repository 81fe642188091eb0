// The node agent: registers drivers, brings volumes to pods and takes them away again, and says how full they are.
export { createNodeAgent, type NodeAgent, type NodeAgentDeps } from './agent.ts'
export type { GrownVolume, GrowVolume } from './csi/grow.ts'
export { type AgentMetrics, createAgentMetrics } from './metrics.ts'
export { NodeNameTakenError } from './node/presence.ts'
export { type NodeAgentOptions, type RunningNodeAgent, startNodeAgent } from './start-agent.ts'
