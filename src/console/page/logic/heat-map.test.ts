import { expect, it } from 'vitest'
import { projectCapacity, projectVolume } from '../rows/storage.ts'
import { buildHeatMap, promisedShare } from './heat-map.ts'

const GIB = 1024 ** 3
const nodes = ['n1', 'n2'].map((name) => ({ name, labels: { host: name } }))
const meta = (name: string) => ({ name, namespace: 'default', uid: name, resourceVersion: '1' })
const aCapacity = (name: string, node: string, capacity?: string) =>
  projectCapacity({
    metadata: meta(name),
    storageClassName: 'fast',
    nodeTopology: { matchLabels: { host: node } },
    capacity,
    maximumVolumeSize: '5Gi',
  })
const aVolume = (name: string, node: string | undefined, storageClassName = 'fast') =>
  projectVolume({
    metadata: meta(name),
    spec: {
      storageClassName,
      capacity: { storage: '10Gi' },
      claimRef: { namespace: 'shop', name },
      ...(node
        ? {
            nodeAffinity: {
              required: {
                nodeSelectorTerms: [{ matchExpressions: [{ key: 'host', operator: 'In', values: [node] }] }],
              },
            },
          }
        : {}),
    },
  })

it('SYS-13 shows the free, promised and used storage of a class in a segment', () => {
  const { classes, rows } = buildHeatMap({
    capacities: [aCapacity('r1', 'n1', '30Gi'), aCapacity('r2', 'n2')],
    volumes: [aVolume('a', 'n1'), aVolume('b', 'n1'), aVolume('c', undefined, 'shared')],
    nodes,
    usedBytesOf: (claim) => (claim === 'shop/a' ? 4 * GIB : undefined),
  })
  expect(classes).toEqual(['fast', 'shared'])
  expect(rows.map(({ name }) => name)).toEqual(['all nodes', 'n1', 'n2'])
  const cell = rows[1]!.cells.get('fast')!
  expect(cell).toMatchObject({
    freeBytes: 30 * GIB,
    promisedBytes: 20 * GIB,
    volumes: 2,
    usedBytes: 4 * GIB,
    measuredVolumes: 1,
    largestBytes: 5 * GIB,
    claims: ['shop/a', 'shop/b'],
  })
  expect(promisedShare(cell)).toBe(0.4)
})

it('shows a capacity as unknown if it is not reported', () => {
  const { rows } = buildHeatMap({
    capacities: [aCapacity('r2', 'n2')],
    volumes: [],
    nodes,
    usedBytesOf: () => undefined,
  })
  expect(rows[0]!.cells.get('fast')).toMatchObject({ freeBytes: undefined, usedBytes: undefined })
  expect(promisedShare(rows[0]!.cells.get('fast')!)).toBeUndefined()
})
