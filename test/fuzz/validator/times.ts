// Checks the format of times: RFC 3339 in UTC, in whole seconds or microseconds.

const SECONDS = /^(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)Z$/
const MICROS = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\.\d{6}Z$/

export function isTime(text: unknown): boolean {
  const match = typeof text === 'string' ? SECONDS.exec(text) : null
  if (!match) return false
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = match.slice(1).map(Number)
  return month >= 1 && month <= 12 && day >= 1 && day <= daysIn(year, month) && hour < 24 && minute < 60 && second < 60
}

export function isMicroTime(text: unknown): boolean {
  const match = typeof text === 'string' ? MICROS.exec(text) : null
  return match !== null && isTime(`${match[1]}Z`)
}

const daysIn = (year: number, month: number): number => {
  if (month === 2) return (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0 ? 29 : 28
  return [4, 6, 9, 11].includes(month) ? 30 : 31
}
