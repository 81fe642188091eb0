import { expect, it } from 'vitest'
import { parseMountInfo } from '../../../host/mountinfo.ts'
import { selectMounts } from './machine-state.ts'

it('SYS-25 selectMounts returns the mounts of nodes, innermost first, and separately those of other programs', () => {
  const mount = (id: number, deviceNumber: string, target: string) =>
    `${id} 1 ${deviceNumber} / ${target} rw - xfs source rw\n`
  const agent = '/data/nodes/node-1/agent'
  const table = parseMountInfo(
    [
      mount(1, '8:1', '/'),
      mount(2, '8:2', '/data'),
      mount(3, '7:0', `${agent}/plugins/x/globalmount`),
      mount(4, '7:0', `${agent}/pods/u/volumes/v/mount`),
      mount(5, '7:1', '/data/nodes/node-1/pool/.stowage/scratch/v'),
      mount(6, '7:1', '/data/nodes/node-1/pool/.stowage-probe-x/xfs-mounted'),
      mount(7, '7:0', '/mnt'),
      mount(8, '8:3', '/data/volumes'),
      mount(9, '7:2', '/dev/shm/.stowage-probe-1-2-x/xfs-mounted'),
      mount(10, '8:4', '/data2/nodes/node-1/agent/x'),
    ].join(''),
  )
  const { mounts, foreignMounts } = selectMounts(table, {
    dataDir: '/data',
    outerDirs: ['/dev/shm/.stowage-probe-1-2-x'],
    loops: [{ device: '/dev/loop0', deviceNumber: '7:0', file: '/data/nodes/node-1/pool/volumes/v.img' }],
  })
  expect(mounts.map(({ id }) => id)).toEqual([9, 6, 5, 4, 3])
  expect(foreignMounts.map(({ target }) => target)).toEqual(['/mnt', '/data/volumes'])
})
