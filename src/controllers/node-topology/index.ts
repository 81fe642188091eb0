// Public exports of the node topology controller.
export { createNodeTopologyController } from './node-topology.ts'
export { TOPOLOGY_MISMATCH } from './plan-topology.ts'
