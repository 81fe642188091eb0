import { describe, expect, it } from 'vitest'
import { isDriverProcess, isPodProcess, isTool, type ProcessMarks, type ProcessView } from './orphaned-processes.ts'

const MARKS: ProcessMarks = { nodesDir: '/data/nodes', podUids: new Set(['u-1']), devices: ['/dev/loop7'] }
const CONTAINER = '/data/nodes/node-1/agent/pods/u-1/containers/main/0'
const aView = (view: Partial<ProcessView>): ProcessView => ({
  cgroup: '0::/user.slice\n',
  args: ['sleep', '1'],
  variables: ['HOME', 'PATH'],
  driverSocket: '',
  mountInfo: '',
  session: 1,
  ...view,
})
const overlayAt = (upper: string) =>
  `27 1 0:24 / / rw - overlay overlay rw,lowerdir=/,upperdir=${upper},workdir=/data/w\n`

it('SYS-25 isDriverProcess recognizes the drivers of this data directory', () => {
  const isDriver = (driverSocket: string) => isDriverProcess(aView({ driverSocket }), MARKS)
  expect(isDriver('/data/nodes/node-1/drivers/x/csi.sock')).toBe(true)
  expect(['', '/data/nodes2/node-1/drivers/x/csi.sock'].map(isDriver)).toEqual([false, false])
})

describe('isPodProcess', () => {
  it.each<[string, Partial<ProcessView>]>([
    ['the cgroup of a pod (v2)', { cgroup: '0::/stowage-pods/podu-1\n' }],
    ['the cgroup of a pod (v1)', { cgroup: '4:memory:/\n3:blkio:/stowage-pods/podu-1/inner\n' }],
    [
      'the files of a container as arguments',
      { args: ['/bin/sh', '-c', '…', 'sh', `${CONTAINER}/pid`, `${CONTAINER}/scratch`] },
    ],
    ['its writable layer in a container directory', { mountInfo: overlayAt(`${CONTAINER}/scratch/upper`) }],
  ])('SYS-25 returns true for a process with %s', (_, view) => {
    expect(isPodProcess(aView(view), MARKS)).toBe(true)
  })

  it.each<[string, Partial<ProcessView>]>([
    ['no mark', {}],
    ['the cgroup of a pod of another data directory', { cgroup: '0::/stowage-pods/podu-2\n' }],
    ['a file of a container as argument, such as tail', { args: ['tail', '-f', `${CONTAINER}/log`] }],
    [
      'the files of another data directory',
      { args: ['sh', '/data/nodes2/x/agent/pods/u/containers/m/0/pid', '/x/scratch'] },
    ],
    ['an overlay of another program', { mountInfo: overlayAt('/var/lib/docker/overlay2/x/diff') }],
  ])('SYS-25 returns false for a process with %s', (_, view) => {
    expect(isPodProcess(aView(view), MARKS)).toBe(false)
  })
})

describe('isTool', () => {
  const variables = ['PATH', 'LC_ALL']

  it('SYS-25 returns true for a program that the server started on one of its files or devices', () => {
    expect(
      isTool(aView({ variables, args: ['losetup', '--find', '/data/nodes/node-1/pool/volumes/v.img'] }), MARKS),
    ).toBe(true)
    expect(isTool(aView({ variables, args: ['mkfs.xfs', '/dev/loop7'] }), MARKS)).toBe(true)
  })

  it('SYS-25 returns false for a program of a user, or one that names other files', () => {
    expect(isTool(aView({ args: ['cp', '/data/nodes/node-1/pool/volumes/v.img', '/backup'] }), MARKS)).toBe(false)
    expect(isTool(aView({ variables, args: ['mkfs.xfs', '/dev/loop70'] }), MARKS)).toBe(false)
  })
})
