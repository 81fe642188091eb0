import { describe, expect, it } from 'vitest'
import { VolumeStates } from './volume-state.ts'

describe('VolumeStates', () => {
  it('lists the volumes that wait for a node or for capacity on it, until their waits change', () => {
    const states = new VolumeStates()
    const node = { kind: 'node', nodeName: 'left' } as const
    const capacity = { kind: 'capacity', nodeName: 'left' } as const
    states.setWaits('v1', [node])
    states.setWaits('v2', [node, capacity])
    expect(states.volumesWaitingFor(node)).toEqual(['v1', 'v2'])
    states.setWaits('v1', [])
    expect(states.volumesWaitingFor(node)).toEqual(['v2'])
    expect(states.volumesWaitingFor(capacity)).toEqual(['v2'])
  })

  it('removes the entry of a volume when it is empty', () => {
    const states = new VolumeStates()
    const creation = { name: 'csi-1', driver: 'disks', handle: 'h', nodeName: 'left' }
    states.beginCreation('v1', creation)
    states.removeIfEmpty('v1')
    expect([...states.creationsOn(creation)]).toEqual(['csi-1'])
    states.endCreation('v1')
    states.removeIfEmpty('v1')
    expect([states.size, states.creationsOn(creation).size]).toEqual([0, 0])
  })
})
