import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { MountEntry } from './host.ts'
import { parseMountInfo } from './mountinfo.ts'

describe('parseMountInfo', () => {
  it('parses lines with tags, without tags, and with escaped names', () => {
    const text = [
      '22 28 0:20 / /proc rw,nosuid - proc proc rw',
      '36 35 98:0 /dir /mnt/a\\040b\\134c ro,noatime master:1 shared:7 - ext4 /dev/loop3 rw,errors=continue',
      '',
    ].join('\n')
    expect(parseMountInfo(text)).toEqual([
      {
        id: 22,
        parentId: 28,
        deviceNumber: '0:20',
        root: '/',
        target: '/proc',
        options: ['rw', 'nosuid'],
        type: 'proc',
        source: 'proc',
        superOptions: ['rw'],
      },
      {
        id: 36,
        parentId: 35,
        deviceNumber: '98:0',
        root: '/dir',
        target: '/mnt/a b\\c',
        options: ['ro', 'noatime'],
        type: 'ext4',
        source: '/dev/loop3',
        superOptions: ['rw', 'errors=continue'],
      },
    ])
  })

  it('parses a directory named -', () => {
    const [entry] = parseMountInfo('36 35 7:0 / /mnt/- rw - ext4 - rw')
    expect(entry).toMatchObject({ target: '/mnt/-', type: 'ext4', source: '-' })
  })

  it('throws for an invalid line instead of omitting a mount', () => {
    expect(() => parseMountInfo('36 35 7:0 / /mnt rw')).toThrow('Cannot parse this line of mountinfo: "36 35 7:0')
  })

  it('parses any formatted table', () => {
    const name = fc.string({ unit: 'grapheme', minLength: 1 }).map((text) => `/${text.replaceAll('\0', '')}`)
    const optionLists = fc.array(fc.constantFrom('rw', 'ro', 'noatime', 'errors=continue'), { minLength: 1 })
    const entry: fc.Arbitrary<MountEntry> = fc.record({
      id: fc.nat(),
      parentId: fc.nat(),
      deviceNumber: fc.tuple(fc.nat(4095), fc.nat(1_048_575)).map(([major, minor]) => `${major}:${minor}`),
      root: name,
      target: name,
      options: optionLists,
      type: fc.constantFrom('ext4', 'xfs', 'devtmpfs', 'cgroup2'),
      source: name,
      superOptions: optionLists,
    })
    const tags = fc.array(fc.constantFrom('shared:1', 'master:22', 'unbindable'))
    fc.assert(
      fc.property(fc.array(fc.tuple(entry, tags)), (mounts) => {
        const text = mounts.map(([mount, mountTags]) => `${formatEntry(mount, mountTags)}\n`).join('')
        expect(parseMountInfo(text)).toEqual(mounts.map(([mount]) => mount))
      }),
    )
  })
})

function formatEntry(entry: MountEntry, tags: readonly string[]): string {
  const escapeOctal = (text: string) =>
    text.replace(/[ \t\n\\#]/g, (character) => `\\${character.charCodeAt(0).toString(8).padStart(3, '0')}`)
  return [
    ...[entry.id, entry.parentId, entry.deviceNumber, escapeOctal(entry.root), escapeOctal(entry.target)],
    ...[entry.options.join(','), ...tags, '-', entry.type, escapeOctal(entry.source), entry.superOptions.join(',')],
  ].join(' ')
}
