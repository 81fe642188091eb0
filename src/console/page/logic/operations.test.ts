import { expect, it } from 'vitest'
import { projectOperation } from '../rows/cluster.ts'
import { compareOperations, groupOperations } from './operations.ts'

const anOperation = (name: string, fields: object = {}) =>
  projectOperation({
    metadata: { name, uid: name, resourceVersion: '1' },
    object: { kind: 'PersistentVolumeClaim', namespace: 'shop', name },
    component: 'provisioner',
    process: 'p',
    operation: 'Provision',
    phase: 'Running',
    ...fields,
  })
const failed = {
  phase: 'Retrying',
  attempts: 4,
  driverAnswer: { driver: 'csi.example.com', method: 'CreateVolume', code: 'Internal' },
}

it('SYS-13 groups operations by driver, those with retries first', () => {
  const rows = [anOperation('a'), anOperation('b', failed), anOperation('c', { ...failed, attempts: 9 })]
  expect(
    groupOperations(rows, 'driver').map(({ name, count, retrying, attemptsMax }) => [
      name,
      count,
      retrying,
      attemptsMax,
    ]),
  ).toEqual([
    ['csi.example.com', 2, 2, 9],
    ['no driver response', 1, 0, 0],
  ])
})

it('sorts operations without a next attempt last', () => {
  const rows = [
    anOperation('a'),
    anOperation('b', { nextAttempt: '2026-11-18T00:00:05Z' }),
    anOperation('c', { nextAttempt: '2026-11-18T00:00:01Z' }),
  ]
  const names = (isDescending: boolean) =>
    rows.toSorted(compareOperations({ column: 'next', isDescending })).map(({ objectName }) => objectName)
  expect(names(false)).toEqual(['c', 'b', 'a'])
  expect(names(true)).toEqual(['b', 'c', 'a'])
})

it("finds an operation by the code of the driver's response", () => {
  expect(anOperation('b', failed).searchText).toContain('createvolume: internal')
})
