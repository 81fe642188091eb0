import { expect, it } from 'vitest'
import { projectCsiNode, projectDriver } from '../rows/cluster.ts'
import { projectClass, projectVolume } from '../rows/storage.ts'
import { buildDriverViews, listCallRates, sumCalls } from './driver-view.ts'

const meta = (name: string) => ({ name, uid: name, resourceVersion: '1' })
const call = (method: string, code: string, perSecond: number, driver = 'csi') => ({
  driver,
  method,
  code,
  perSecond,
  p50Ms: 5,
  p99Ms: code === 'OK' ? 9 : null,
})
const sample = {
  time: '',
  claims: null,
  operations: null,
  provisionedPerSecond: null,
  boundPerSecond: null,
  steps: null,
  csiCalls: [
    call('CreateVolume', 'OK', 2),
    call('CreateVolume', 'Internal', 1),
    call('GetCapacity', 'OK', 4),
    call('GetCapacity', 'OK', 9, 'other'),
  ],
}

it("SYS-13 lists a driver's classes, nodes and released volumes, even without a CSIDriver object", () => {
  const views = buildDriverViews({
    drivers: [projectDriver({ metadata: meta('csi'), spec: {} })],
    classes: [
      projectClass({ metadata: meta('fast'), provisioner: 'csi' }),
      projectClass({ metadata: meta('dirs'), provisioner: 'other' }),
    ],
    csiNodes: [projectCsiNode({ metadata: meta('n1'), spec: { drivers: [{ name: 'csi', nodeID: 'n1' }] } })],
    volumes: ['Bound', 'Released'].map((phase) =>
      projectVolume({ metadata: meta(phase), spec: { csi: { driver: 'csi' } }, status: { phase } }),
    ),
  })
  expect(
    views.map(({ name, driver, classes, nodes, volumes, unclaimed }) => [
      name,
      driver !== undefined,
      classes.length,
      nodes,
      volumes,
      unclaimed.length,
    ]),
  ).toEqual([
    ['csi', true, 1, ['n1'], 2, 1],
    ['other', false, 1, [], 0, 0],
  ])
})

it('averages calls by method over the samples and separates failures', () => {
  expect(sumCalls([sample, { ...sample, csiCalls: [] }, { ...sample, csiCalls: null }], 'csi')).toEqual([
    {
      method: 'GetCapacity',
      codes: [{ code: 'OK', perSecond: 2 }],
      perSecond: 2,
      failedPerSecond: 0,
      p50Ms: 5,
      p99Ms: 9,
    },
    {
      method: 'CreateVolume',
      codes: [
        { code: 'OK', perSecond: 1 },
        { code: 'Internal', perSecond: 0.5 },
      ],
      perSecond: 1.5,
      failedPerSecond: 0.5,
      p50Ms: 5,
      p99Ms: 9,
    },
  ])
})

it('reports calls that are not sampled as unknown, not as zero', () => {
  expect(sumCalls([{ ...sample, csiCalls: null }], 'csi')).toBeUndefined()
  expect(listCallRates([{ ...sample, csiCalls: null }, sample], 'csi', ({ code }) => code !== 'OK')).toEqual([null, 1])
})
