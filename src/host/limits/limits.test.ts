import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { IoLimit } from '../host.ts'
import { normalizeCgroupPath } from './hierarchy.ts'
import { LIMIT_KEYS, limitValue } from './limit-values.ts'
import { createNoLimits } from './none.ts'
import { detectLimits } from './open-limits.ts'
import { createV1Limits, parseV1Lines } from './v1.ts'
import { commonAncestor, createV2Limits, formatV2Line, parseV2Lines } from './v2.ts'

let root: string

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'stowage-limits-'))
})
afterEach(() => rm(root, { recursive: true, force: true }))

const readDeviceNumber = async () => '7:3'
const DEVICE = '/dev/loop3'
const V1_FILES = ['read_iops', 'write_iops', 'read_bps', 'write_bps'].map((key) => `blkio.throttle.${key}_device`)

async function createCgroups(paths: readonly string[], files: Readonly<Record<string, string>>): Promise<void> {
  for (const path of paths) {
    await mkdir(join(root, path), { recursive: true })
    for (const [name, text] of Object.entries(files)) await writeFile(join(root, path, name), text)
  }
}

const readTrimmed = (path: string) => readFile(join(root, path), 'utf8').then((text) => text.trim())

describe('limits of cgroup v1', () => {
  const createTestLimits = () => createV1Limits({ root, readDeviceNumber })

  beforeEach(() =>
    createCgroups(['/', '/pods', '/pods/a', '/pods/b'], Object.fromEntries(V1_FILES.map((file) => [file, '']))),
  )

  it('PIO-10 are written to the cgroup of the workload and to the root, where write-back runs', async () => {
    const enforcement = await createTestLimits().apply(DEVICE, { writeIops: 100, readBps: 2048 }, ['/pods/a'])
    expect(enforcement).toEqual({ is: 'enforced', cgroups: ['/', '/pods/a'], caveats: [] })
    for (const cgroup of ['', 'pods/a/']) {
      expect(await readTrimmed(`${cgroup}blkio.throttle.write_iops_device`)).toBe('7:3 100')
      expect(await readTrimmed(`${cgroup}blkio.throttle.read_bps_device`)).toBe('7:3 2048')
      expect(await readTrimmed(`${cgroup}blkio.throttle.read_iops_device`), 'not limited').toBe('7:3 0')
    }
    expect(await readTrimmed('pods/blkio.throttle.write_iops_device')).toBe('')
  })

  it('PIO-10 report that several cgroups do not share one limit', async () => {
    const enforcement = await createTestLimits().apply(DEVICE, { writeIops: 100 }, ['/pods/a', '/pods/b/'])
    expect(enforcement).toMatchObject({
      is: 'enforced',
      caveats: ['each of the 2 cgroups has the full limit'],
    })
  })

  it('PIO-10 are removed from cgroups that no longer use the volume', async () => {
    const ioLimits = createTestLimits()
    await ioLimits.apply(DEVICE, { writeIops: 100 }, ['/pods/a'])
    await ioLimits.apply(DEVICE, { writeIops: 100 }, ['/pods/b'])
    expect((await ioLimits.appliedLimits(DEVICE)).map(({ cgroup }) => cgroup)).toEqual(['/', '/pods/b'])
  })

  it('PIO-10 are cleared completely, including those of an earlier driver process', async () => {
    await writeFile(join(root, 'pods/blkio.throttle.write_bps_device'), '7:3 500\n')
    const ioLimits = createTestLimits()
    expect(await ioLimits.appliedLimits(DEVICE)).toEqual([{ cgroup: '/pods', limit: { writeBps: 500 } }])
    await ioLimits.apply(DEVICE, { writeIops: 100 }, ['/pods/a'])
    await ioLimits.clear(DEVICE)
    expect(await ioLimits.appliedLimits(DEVICE)).toEqual([])
  })

  it('are reported as not enforced without a workload cgroup', async () => {
    expect(await createTestLimits().apply(DEVICE, { writeIops: 100 }, [])).toEqual({
      is: 'not enforced',
      message: 'no workload cgroup is known; with cgroup v1 only write-back and the root cgroup are limited',
    })
    expect(await createTestLimits().apply(DEVICE, { writeIops: 100 }, ['/pods/gone'])).toMatchObject({
      is: 'not enforced',
      message: expect.stringContaining('no cgroup of the workload exists: /pods/gone'),
    })
  })

  it('PIO-10 can be removed without a workload cgroup', async () => {
    const ioLimits = createTestLimits()
    await ioLimits.apply(DEVICE, { writeIops: 100 }, ['/pods/a'])
    expect(await ioLimits.apply(DEVICE, 'none', [])).toEqual({ is: 'enforced', cgroups: [], caveats: [] })
    expect(await ioLimits.appliedLimits(DEVICE)).toEqual([])
  })

  it('are parsed by device', () => {
    expect(parseV1Lines('7:0 100\n7:3 0\n8:16 4294967295\n')).toEqual(
      new Map([
        ['7:0', 100],
        ['8:16', 4294967295],
      ]),
    )
  })
})

describe('limits of cgroup v2', () => {
  const createTestLimits = () => createV2Limits({ root, readDeviceNumber })

  beforeEach(async () => {
    await createCgroups(['/'], { 'cgroup.controllers': 'cpu io memory', 'cgroup.subtree_control': '' })
    await createCgroups(['/pods', '/pods/a', '/pods/b', '/system'], {
      'cgroup.controllers': 'cpu io memory',
      'cgroup.subtree_control': '',
      'io.max': '',
    })
  })

  it('PIO-10 are written to the deepest cgroup that contains all workloads', async () => {
    const enforcement = await createTestLimits().apply(DEVICE, { writeIops: 100, readBps: 2048 }, [
      '/pods/a',
      '/pods/b',
    ])
    expect(enforcement).toEqual({ is: 'enforced', cgroups: ['/pods'], caveats: [] })
    expect(await readTrimmed('pods/io.max')).toBe('7:3 riops=max wiops=100 rbps=2048 wbps=max')
    expect(await readTrimmed('pods/a/io.max')).toBe('')
  })

  it('PIO-10 are written to each cgroup if the root is their only common ancestor', async () => {
    expect(await createTestLimits().apply(DEVICE, { writeIops: 100 }, ['/pods/a', '/system'])).toEqual({
      is: 'enforced',
      cgroups: ['/pods/a', '/system'],
      caveats: ['each of the 2 cgroups has the full limit'],
    })
  })

  it('PIO-10 enable the controller in all ancestors', async () => {
    for (const cgroup of ['pods', 'pods/a']) await writeFile(join(root, cgroup, 'cgroup.controllers'), 'memory')
    await createTestLimits().apply(DEVICE, { writeIops: 100 }, ['/pods/a'])
    expect(await readTrimmed('cgroup.subtree_control')).toBe('+io')
    expect(await readTrimmed('pods/cgroup.subtree_control')).toBe('+io')
    expect(await readTrimmed('pods/a/cgroup.subtree_control'), 'a leaf keeps its processes').toBe('')
  })

  it('PIO-10 move to another cgroup with the workloads', async () => {
    const ioLimits = createTestLimits()
    await ioLimits.apply(DEVICE, { writeIops: 100 }, ['/pods/a'])
    await ioLimits.apply(DEVICE, { writeIops: 200 }, ['/pods/a', '/pods/b'])
    expect(await ioLimits.appliedLimits(DEVICE)).toEqual([{ cgroup: '/pods', limit: { writeIops: 200 } }])
    await ioLimits.clear(DEVICE)
    expect(await ioLimits.appliedLimits(DEVICE)).toEqual([])
  })

  it('are reported as not enforced for the root cgroup', async () => {
    expect(await createTestLimits().apply(DEVICE, { writeIops: 100 }, ['/'])).toMatchObject({ is: 'not enforced' })
    expect(await createTestLimits().apply(DEVICE, { writeIops: 100 }, [])).toMatchObject({
      is: 'not enforced',
      message: expect.stringContaining('no workload cgroup is known'),
    })
  })

  it('are parsed from any formatted line of io.max', () => {
    const rate = fc.option(fc.integer({ min: 1, max: 2 ** 32 - 1 }), { nil: undefined })
    const limit = fc.record({ readIops: rate, writeIops: rate, readBps: rate, writeBps: rate })
    fc.assert(
      fc.property(limit, (rateLimit) => {
        const expectedLimit = Object.fromEntries(Object.entries(rateLimit).filter(([, value]) => value !== undefined))
        const actual = parseV2Lines(`8:0 rbps=1\n${formatV2Line('7:3', rateLimit)}\n`).get('7:3')
        expect(actual ?? {}).toEqual(expectedLimit)
      }),
    )
  })

  it('use the deepest common ancestor of all cgroups', () => {
    const name = fc.constantFrom('a', 'b', 'c')
    const path = fc.array(name, { minLength: 1, maxLength: 4 }).map((names) => `/${names.join('/')}`)
    const contains = (cgroup: string, descendant: string) =>
      cgroup === '/' || descendant === cgroup || descendant.startsWith(`${cgroup}/`)
    fc.assert(
      fc.property(fc.array(path, { minLength: 1, maxLength: 4 }), name, (cgroups, childName) => {
        const ancestor = commonAncestor(cgroups)!
        expect(cgroups.every((cgroup) => contains(ancestor, cgroup))).toBe(true)
        expect(cgroups.every((cgroup) => contains(join(ancestor, childName), cgroup))).toBe(false)
      }),
    )
  })
})

describe('createNoLimits', () => {
  it('reports limits as not enforced, and their removal as enforced', async () => {
    const limits = createNoLimits('there is no controller')
    expect(await limits.apply(DEVICE, { readIops: 1 }, ['/a'])).toEqual({
      is: 'not enforced',
      message: 'there is no controller',
    })
    expect(await limits.apply(DEVICE, 'none', [])).toMatchObject({ is: 'enforced' })
  })
})

describe('limitValue', () => {
  it('caps values at the maximum of the kernel, and rounds them up', () => {
    expect(limitValue({ readIops: 2 ** 32 }, 'readIops')).toBe('4294967295')
    expect(limitValue({ writeBps: 2 ** 64 }, 'writeBps')).toBe('9223372036854775807')
    expect(limitValue({ writeBps: 0.4 }, 'writeBps')).toBe('1')
  })

  it('returns a positive integer within range for any positive number', () => {
    fc.assert(
      fc.property(
        fc.double({ min: 0, minExcluded: true, noNaN: true, noDefaultInfinity: true }),
        fc.constantFrom(...LIMIT_KEYS),
        (rateLimit, key) => {
          const value = BigInt(limitValue({ [key]: rateLimit } as IoLimit, key)!)
          expect(value >= 1n && value <= (key.endsWith('Iops') ? 2n ** 32n - 1n : 2n ** 63n - 1n)).toBe(true)
        },
      ),
    )
  })

  it.each([0, -1, Number.NaN, Number.POSITIVE_INFINITY])('rejects %s', (value) => {
    expect(() => limitValue({ readBps: value }, 'readBps')).toThrow('must be a positive number')
  })
})

describe('detectLimits', () => {
  const mountInfo = () => join(root, 'mountinfo')

  it('prefers v2 with the io controller', async () => {
    await createCgroups(['/v2'], { 'cgroup.controllers': 'cpu io', 'cgroup.subtree_control': '' })
    await createCgroups(['/v1'], { 'blkio.throttle.write_bps_device': '' })
    await writeFile(
      mountInfo(),
      `30 1 0:1 / ${root}/v1 rw - cgroup cgroup rw,blkio\n31 1 0:2 / ${root}/v2 rw - cgroup2 cgroup2 rw\n`,
    )
    expect(await detectLimits(mountInfo())).toEqual({ version: 'v2', root: `${root}/v2` })
  })

  it('uses blkio if v2 is mounted without the io controller', async () => {
    await createCgroups(['/v2'], { 'cgroup.controllers': 'hugetlb', 'cgroup.subtree_control': '' })
    await createCgroups(['/v1'], { 'blkio.throttle.write_bps_device': '' })
    await writeFile(
      mountInfo(),
      `31 1 0:2 / ${root}/v2 rw - cgroup2 cgroup2 rw\n30 1 0:1 / ${root}/v1 rw - cgroup cgroup rw,blkio\n`,
    )
    expect(await detectLimits(mountInfo())).toEqual({ version: 'v1', root: `${root}/v1` })
  })

  it('returns the reasons if neither is available', async () => {
    await writeFile(mountInfo(), `31 1 0:2 / ${root} rw - cgroup2 cgroup2 rw\n`)
    expect(await detectLimits(mountInfo())).toEqual({
      version: 'none',
      message: `IO limits cannot be enforced here: the cgroup v2 hierarchy at ${root} does not have the io controller, and no cgroup v1 hierarchy with blkio is mounted`,
    })
  })
})

it('normalizeCgroupPath returns paths inside the hierarchy', () => {
  expect(normalizeCgroupPath('../../etc')).toBe('/etc')
  expect(normalizeCgroupPath('pods/../../x/')).toBe('/x')
  expect(normalizeCgroupPath('/')).toBe('/')
})
