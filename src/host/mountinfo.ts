// Parses /proc/self/mountinfo, one mount per line:
//   36 35 98:0 /dir /mnt/a\040b rw,noatime master:1 - ext3 /dev/root rw,errors=continue
//   id parent device root target options (any number of tags) - type source super-options
// Space, tab, newline, backslash and # are escaped as a backslash and three octal digits.
import type { MountEntry } from './host.ts'

export function parseMountInfo(text: string): MountEntry[] {
  return text.split('\n').filter(Boolean).map(parseLine)
}

function parseLine(line: string): MountEntry {
  const fields = line.split(' ')
  const dash = fields.indexOf('-', TAGS_INDEX)
  const [id, parentId, deviceNumber, root, target, options] = fields
  const [type, source, superOptions] = fields.slice(dash + 1)
  if (dash < 0 || superOptions === undefined) throw new Error(`Cannot parse this line of mountinfo: "${line}"`)
  return {
    id: Number(id),
    parentId: Number(parentId),
    deviceNumber: deviceNumber!,
    root: unescapeOctal(root!),
    target: unescapeOctal(target!),
    options: options!.split(','),
    type: type!,
    source: unescapeOctal(source!),
    superOptions: superOptions.split(','),
  }
}

const TAGS_INDEX = 6

// Only ASCII characters are escaped, so the escapes can be decoded after UTF-8.
const unescapeOctal = (field: string) =>
  field.replace(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)))
