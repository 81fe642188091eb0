import { expect, it } from 'vitest'
import { projectClaim } from '../rows/claim.ts'
import { aClaim, aClaimObject, aClaimView } from './claim.fixture.ts'
import { statusOfClaim } from './claim-status.ts'
import { compareClaims, matchClaims } from './claim-view.ts'

const why = {
  uid: '',
  namespace: 'shop',
  name: '',
  state: 'failed',
  reason: 'ProvisioningFailed',
  message: 'full',
} as const

it('SYS-13 shows a claim that waits for a pod as neutral, and a failed one as a problem', () => {
  const pending = aClaim('data', { phase: 'Pending' })
  expect(statusOfClaim(pending, { state: 'waiting', reason: 'WaitForFirstConsumer' })).toEqual({
    word: 'Pending',
    tone: 'wait',
  })
  expect(statusOfClaim(pending, why)).toEqual({ word: 'Pending', tone: 'bad' })
  expect(statusOfClaim(pending, undefined).tone).toBe('wait')
})

it.each([
  [{}, 'Bound', 'ok'],
  [{ deletedMs: 1 }, 'Terminating', 'busy'],
  [{ phase: 'Lost' }, 'Lost', 'bad'],
  [{ requestBytes: 20 * 1024 ** 3 }, 'Expanding', 'busy'],
  [{ resizeStatus: 'NodeResizePending' }, 'Expanding', 'busy'],
  [{ resizeStatus: 'ControllerResizeInfeasible' }, 'Expansion failed', 'bad'],
  [{ modifyStatus: 'InProgress' }, 'Changing', 'busy'],
  [{ modifyStatus: 'Infeasible' }, 'Change failed', 'bad'],
  [{ health: 'Degraded' }, 'Degraded', 'warn'],
  [{ health: 'DataLoss' }, 'DataLoss', 'bad'],
])('the status of a claim with %o is %s', (fields, word, tone) => {
  expect(statusOfClaim(aClaim('data', fields), undefined)).toEqual({ word, tone })
})

it('projects sizes to bytes, and the requested attributes class only if it differs', () => {
  const row = projectClaim(
    aClaimObject('data', {
      spec: { volumeAttributesClassName: 'gold' },
      status: { currentVolumeAttributesClassName: 'silver' },
    }),
  )
  expect(row).toMatchObject({ capacityBytes: 10 * 1024 ** 3, attributesClass: 'silver', targetAttributesClass: 'gold' })
  const settled = projectClaim(
    aClaimObject('data', {
      spec: { volumeAttributesClassName: 'gold' },
      status: { currentVolumeAttributesClassName: 'gold' },
    }),
  )
  expect(settled.targetAttributesClass).toBeUndefined()
})

it('filters by text, column, exclusion, status and problems', () => {
  const rows = [
    aClaimView('orders'),
    aClaimView('users', { fields: { className: 'slow' } }),
    aClaimView('logs', { why, fields: { phase: 'Pending' } }),
  ]
  const names = (filter: Parameters<typeof matchClaims>[0]) => rows.filter(matchClaims(filter)).map(({ name }) => name)
  expect(names({ q: 'ord' })).toEqual(['orders'])
  expect(names({ q: 'class:slow' })).toEqual(['users'])
  expect(names({ q: '-class:slow' })).toEqual(['orders', 'logs'])
  expect(names({ q: 'why:provisioning' })).toEqual(['logs'])
  expect(names({ q: 'unknown:value' })).toEqual([])
  expect(names({ status: 'Pending' })).toEqual(['logs'])
  expect(names({ problems: '1' })).toEqual(['logs'])
  expect(names({ ns: 'other' })).toEqual([])
})

it('sorts rows without a value last in both directions', () => {
  const rows = [
    aClaimView('unknown'),
    aClaimView('full', { usage: { usedBytes: 9 * 1024 ** 3 } }),
    aClaimView('empty', { usage: { usedBytes: 0 } }),
  ]
  const names = (isDescending: boolean) =>
    rows.toSorted(compareClaims({ column: 'used', isDescending })).map(({ name }) => name)
  expect(names(false)).toEqual(['empty', 'full', 'unknown'])
  expect(names(true)).toEqual(['full', 'empty', 'unknown'])
})

it("shows the node of a claim's pod, else of its volume, else the selected node", () => {
  const pod = {
    uid: 'p',
    name: 'p',
    namespace: 'shop',
    node: 'n1',
    phase: 'Running',
    claims: ['a'],
    createdMs: 0,
    deletedMs: undefined,
  }
  expect(aClaimView('a', { pods: [pod], usage: { node: 'n2' } }).node).toBe('n1')
  expect(aClaimView('a', { usage: { node: 'n2' }, fields: { selectedNode: 'n3' } }).node).toBe('n2')
  expect(aClaimView('a', { fields: { selectedNode: 'n3' } }).node).toBe('n3')
})
