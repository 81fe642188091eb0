import { describe, expect, it } from 'vitest'
import { singleNodeTopology } from './node-topologies.ts'
import { topologyRequirement } from './topology.ts'

describe('singleNodeTopology', () => {
  const plan = (selectedNode: string) =>
    topologyRequirement({
      claimName: 'claim',
      selectedNode,
      allowedTopologies: undefined,
      strict: true,
      immediate: true,
      nodes: singleNodeTopology('node-1', { host: 'node-1' }),
      claimTopology: { node: undefined },
    })

  it('restricts volumes to its node and reschedules pods of other nodes', () => {
    expect(plan('node-1')?.requisite).toEqual([[['host', 'node-1']]])
    expect(() => plan('node-2')).toThrowError(expect.objectContaining({ failure: 'reschedule' }))
  })
})
