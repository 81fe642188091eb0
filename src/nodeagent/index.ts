// The public names of the node agent.
export { createNodeAgent } from './agent.ts'
export { createAgentMetrics } from './metrics.ts'
export { canWatchVolumes } from './node/can-watch-volumes.ts'
export { readMachineInfo } from './node/machine-info.ts'
export { NodeNameTakenError } from './node/node-heartbeat.ts'
export type { PodOptions } from './pod-options.ts'
export { type RunningNodeAgent, startNodeAgent } from './start-agent.ts'
export { reportUsage } from './stats/report-usage.ts'
