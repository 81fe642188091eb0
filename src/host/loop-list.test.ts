import { describe, expect, it } from 'vitest'
import { parseLoopList } from './loop-list.ts'

const LOSETUP_OUTPUT = `{
   "loopdevices": [
      {
         "name": "/dev/loop0",
         "back-file": "/pool/a b.img",
         "back-ino": 10004711,
         "back-maj:min": "     254:0  ",
         "ro": false,
         "autoclear": true,
         "offset": 0,
         "sizelimit": 0
      },{
         "name": "/dev/loop12",
         "back-file": "/pool/b.img (deleted)",
         "back-ino": 17,
         "back-maj:min": "254:0",
         "ro": true,
         "autoclear": false,
         "offset": 4096,
         "sizelimit": 1048576
      }
   ]
}`

describe('parseLoopList', () => {
  it('returns the backing file, its identity, and whether it is deleted', () => {
    expect(parseLoopList(LOSETUP_OUTPUT)).toEqual([
      {
        device: '/dev/loop0',
        file: '/pool/a b.img',
        isDeleted: false,
        fileId: '254:0/10004711',
        isReadOnly: false,
        isAutoclear: true,
        offsetBytes: 0,
        sizeLimitBytes: 0,
      },
      {
        device: '/dev/loop12',
        file: '/pool/b.img',
        isDeleted: true,
        fileId: '254:0/17',
        isReadOnly: true,
        isAutoclear: false,
        offsetBytes: 4096,
        sizeLimitBytes: 1048576,
      },
    ])
  })

  it('parses the output of older releases, in which all values are strings', () => {
    const [device] = parseLoopList(
      '{"loopdevices":[{"name":"/dev/loop1","back-file":"/a","back-ino":"5","back-maj:min":"8:1","ro":"1","autoclear":"0","offset":"0","sizelimit":"0"}]}',
    )
    expect(device).toMatchObject({ fileId: '8:1/5', isReadOnly: true, isAutoclear: false, offsetBytes: 0 })
  })

  it('returns an empty list for both formats of empty output', () => {
    expect(parseLoopList('{\n   "loopdevices": [\n\n   ]\n}\n')).toEqual([])
    expect(parseLoopList('')).toEqual([])
  })

  it('omits a device without a backing file', () => {
    expect(parseLoopList('{"loopdevices":[{"name":"/dev/loop1","back-file":null}]}')).toEqual([])
  })
})
