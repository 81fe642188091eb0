import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { programMappings, sharedFileMappings } from './file-mappings.ts'

const MAPS = `00400000-00b6f000 r--p 00000000 fe:00 131                                /usr/bin/node
7f6fd9000000-7f6fe4fc0000 r--s 00000000 fe:00 9978050                    /data/store/store.mdb
7f6ff4d20000-7f6ff4d40000 r--s 00000000 fe:00 9978050                    /data/store dir/store.mdb (deleted)
7f7014d57000-7f7014d5a000 rw-s 00000000 fe:00 9978049                    /data/store/store.mdb-lock
7f7014e00000-7f7014e10000 r--s 00000000 00:01 77
7f7014f00000-7f7014f10000 rw-p 00000000 00:00 0                          [heap]
`

describe('sharedFileMappings', () => {
  it('chooses every mapping of a file that is shared and read-only', () => {
    expect(sharedFileMappings(MAPS)).toEqual([
      expect.objectContaining({ address: 0x7f6fd9000000, bytes: 0xbfc0000 }),
      expect.objectContaining({ address: 0x7f6ff4d20000, bytes: 0x20000 }),
    ])
  })

  it('finds none in an empty list', () => {
    expect(sharedFileMappings('')).toEqual([])
  })
})

describe('programMappings', () => {
  it('chooses the code and the constants of the program', () => {
    const smaps = [
      mapping('00400000-00b6f000 r--p 00000000', '/usr/bin/node'),
      mapping('00b72000-025fe000 r-xp 00772000', '/usr/bin/node'),
      mapping('0563e000-0565d000 rw-p 0523d000', '/usr/bin/node', { anonymousKb: 100 }),
      mapping('0565d000-05689000 rw-p 00000000', '', { anonymousKb: 40 }),
    ]
    expect(addresses(smaps)).toEqual([0x400000, 0xb72000])
  })

  it('leaves a mapping with changed pages', () => {
    const smaps = [
      mapping('00400000-00b6f000 r--p 00000000', '/usr/bin/node'),
      mapping('00b72000-025fe000 r-xp 00772000', '/usr/bin/node', { anonymousKb: 4 }), // a breakpoint
      mapping('02601000-0563a000 r--p 02201000', '/usr/bin/node', { swappedKb: 8 }),
    ]
    expect(addresses(smaps)).toEqual([0x400000])
  })

  it('leaves every mapping if the list does not count changed pages', () => {
    expect(programMappings(MAPS, '/usr/bin/node')).toEqual([])
  })

  it('leaves libraries and parts of the program that are mapped elsewhere', () => {
    const smaps = [
      mapping('00300000-00310000 r-xp 014c4000', '/usr/bin/node'),
      mapping('00400000-00b6f000 r--p 00000000', '/usr/bin/node'),
      mapping('7f59a3e40000-7f59a3fd2000 r-xp 00000000', '/usr/lib/libc.so.6'),
      mapping('7f59a4e40000-7f59a4fd2000 r-xp 014c4000', '/usr/bin/node'),
    ]
    expect(addresses(smaps)).toEqual([0x400000])
  })

  it('finds none if the program was replaced', () => {
    expect(addresses([mapping('00400000-00b6f000 r--p 00000000', '/usr/bin/node (deleted)')])).toEqual([])
  })

  it.runIf(process.platform === 'linux')('finds the code of this process (skipped on other systems than Linux)', () => {
    const total = programMappings(readFileSync('/proc/self/smaps', 'latin1'), process.execPath)
    expect(total.reduce((bytes, mapping) => bytes + mapping.bytes, 0)).toBeGreaterThan(10 * 2 ** 20)
  })

  const addresses = (smaps: readonly string[]) =>
    programMappings(smaps.join(''), '/usr/bin/node').map(({ address }) => address)
})

/** Returns the lines of a mapping in /proc/self/smaps. */
function mapping(line: string, path: string, { anonymousKb = 0, swappedKb = 0 } = {}): string {
  return `${line} fe:00 131 ${path}
Size:               7612 kB
Rss:                5948 kB
Anonymous:      ${String(anonymousKb).padStart(8)} kB
AnonHugePages:         0 kB
Swap:           ${String(swappedKb).padStart(8)} kB
SwapPss:               0 kB
VmFlags: rd mr mw me
`
}
