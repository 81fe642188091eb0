import { describe, expect, it } from 'vitest'
import { cellsOf, tryCreate, tryStatus, tryUpdate } from '../kind.fixture.ts'
import { nodeKind } from './node.ts'

const aNode = (fields: object = {}) => ({ metadata: { name: 'node-1' }, ...fields })

describe('Node', () => {
  it('keeps the status of a create request and defaults allocatable to capacity', () => {
    const { object } = tryCreate(nodeKind, aNode({ status: { capacity: { cpu: '4' } } }))
    expect(object.status).toEqual({ capacity: { cpu: '4' }, allocatable: { cpu: '4' } })
  })

  it.each([
    [{ podCIDR: '10.0.0.0/24' }, { podCIDR: '10.0.0.0/24', podCIDRs: ['10.0.0.0/24'] }],
    [{ podCIDRs: ['10.0.0.0/24'] }, { podCIDR: '10.0.0.0/24', podCIDRs: ['10.0.0.0/24'] }],
    [
      { podCIDR: '10.1.0.0/24', podCIDRs: ['10.0.0.0/24', 'fd00::/64'] },
      { podCIDR: '10.1.0.0/24', podCIDRs: ['10.1.0.0/24'] },
    ],
  ])('sets podCIDR and podCIDRs to the same value: %j', (spec, expected) => {
    expect(tryCreate(nodeKind, aNode({ spec })).object.spec).toEqual(expected)
  })

  it.each([
    [
      { podCIDRs: ['10.0.0.0'] },
      'spec.podCIDRs[0]: Invalid value: "10.0.0.0": must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)',
    ],
    [
      { podCIDRs: ['10.0.0.0/33'] },
      'spec.podCIDRs[0]: Invalid value: "10.0.0.0/33": must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)',
    ],
    [
      { podCIDRs: ['10.0.0.0/24', '10.0.1.0/24'] },
      'spec.podCIDRs: Invalid value: ["10.0.0.0/24","10.0.1.0/24"]: may specify no more than one CIDR for each IP family',
    ],
    [{ taints: [{ key: 'a', effect: '' }] }, 'metadata.taints[0].effect: Required value'],
    [
      { taints: [{ key: 'a', effect: 'Never' }] },
      'metadata.taints[0].effect: Unsupported value: "Never": supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"',
    ],
    [
      {
        taints: [
          { key: 'a', effect: 'NoSchedule' },
          { key: 'a', value: 'x', effect: 'NoSchedule' },
        ],
      },
      'metadata.taints[1]: Duplicate value: {"key":"a","value":"x","effect":"NoSchedule"}',
    ],
  ])('rejects the spec %j', (spec, message) => {
    expect(tryCreate(nodeKind, aNode({ spec })).errors).toEqual([message])
  })

  it('accepts both IP families, and one taint key with two effects', () => {
    const taints = [
      { key: 'a', effect: 'NoSchedule' },
      { key: 'a', effect: 'NoExecute' },
    ]
    const spec = { podCIDRs: ['10.0.0.0/24', 'fd00::/64'], taints }
    expect(tryCreate(nodeKind, aNode({ spec })).errors).toEqual([])
  })

  it('rejects changes to podCIDRs and providerID after they are set', () => {
    const { object: emptyNode } = tryCreate(nodeKind, aNode())
    const spec = { podCIDRs: ['10.0.0.0/24'], providerID: 'cloud://1' }
    const { object: configuredNode, errors } = tryUpdate(nodeKind, emptyNode, aNode({ spec }))
    expect(errors).toEqual([])
    expect(
      tryUpdate(nodeKind, configuredNode, aNode({ spec: { podCIDRs: ['10.1.0.0/24'], providerID: 'cloud://2' } }))
        .errors,
    ).toEqual([
      'spec.podCIDRs: Forbidden: node updates may not change podCIDR except from "" to valid',
      'spec.providerID: Invalid value: null: field cannot be modified once set',
    ])
    expect(tryUpdate(nodeKind, configuredNode, aNode({ spec: { podCIDRs: ['10.0.0.0/24'] } })).errors).toEqual([
      'spec.providerID: Invalid value: null: field cannot be cleared once set',
    ])
    expect(tryUpdate(nodeKind, configuredNode, aNode({ spec: { ...spec, unschedulable: true } })).errors).toEqual([])
  })

  it('rejects an invalid status', () => {
    const { object } = tryCreate(nodeKind, aNode())
    const address = { type: 'InternalIP', address: '10.0.0.1' }
    const status = { capacity: { cpu: '-1', pods: '1.5' }, allocatable: { cpu: '1' }, addresses: [address, address] }
    expect(tryStatus(nodeKind, object, status).errors).toEqual([
      'status.capacity.cpu: Invalid value: "-1": must be greater than or equal to 0',
      'status.capacity.pods: Invalid value: "1500m": must be an integer',
      'status.addresses[1]: Duplicate value: {"type":"InternalIP","address":"10.0.0.1"}',
    ])
  })

  it.each([
    [[], false, 'Unknown'],
    [[{ type: 'Ready', status: 'True' }], false, 'Ready'],
    [[{ type: 'Ready', status: 'Unknown' }], true, 'NotReady,SchedulingDisabled'],
  ])(
    'with conditions %j and unschedulable %s has the status %s in the table',
    (conditions, unschedulable, expected) => {
      const { object } = tryCreate(nodeKind, aNode({ spec: { unschedulable }, status: { conditions } }))
      expect(cellsOf(nodeKind, object).Status).toBe(expected)
      expect(nodeKind.selectableFields?.['spec.unschedulable']?.(object)).toBe(String(unschedulable))
    },
  )

  it('has a table row with its roles, addresses and versions', () => {
    const nodeInfo = { kubeletVersion: 'v1.37.0', kernelVersion: '6.8', architecture: 'amd64', osImage: 'Debian' }
    const labels = {
      'node-role.kubernetes.io/worker': '',
      'node-role.kubernetes.io/': '',
      'kubernetes.io/role': 'edge',
    }
    const body = {
      metadata: { name: 'node-1', labels },
      status: { nodeInfo, addresses: [{ type: 'InternalIP', address: '10.0.0.1' }] },
    }
    expect(cellsOf(nodeKind, tryCreate(nodeKind, body).object)).toEqual({
      Name: 'node-1',
      Status: 'Unknown',
      Roles: 'edge,worker',
      Age: '<unknown>',
      Version: 'v1.37.0',
      'Internal-IP': '10.0.0.1',
      'External-IP': '<none>',
      'OS-Image': 'Debian',
      'Kernel-Version': '6.8 (amd64)',
      'Container-Runtime': '<unknown>',
    })
  })
})
