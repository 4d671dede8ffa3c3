// The models, as src/measuretwice/tcp/model.py has them; a test holds the two together.
(() => {
  "use strict";

  // Mathis 1997, equation 3: C * MSS / (RTT * sqrt(p)), in bit/s.
  function mathis(mssBytes, rttMs, lossRatio, constant = 1) {
    if (lossRatio === 0 || rttMs === 0) return Infinity;
    return constant * mssBytes * 8 / (rttMs / 1e3) / Math.sqrt(lossRatio);
  }

  // How many losses the model expects in a run.
  function losses(rttMs, lossRatio, durationS, constant = 1) {
    return constant * durationS * Math.sqrt(lossRatio) / (rttMs / 1e3);
  }

  // How long the model needs for so many losses.
  function timeForLossesS(rttMs, lossRatio, number, constant = 1) {
    return number * (rttMs / 1e3) / (constant * Math.sqrt(lossRatio));
  }

  // Padhye 1998, equation 30, without a limit of the window and with an ACK a segment:
  // segments a second, those sent again included.
  function pftkSegmentsPerS(rttMs, p, rtoMs) {
    const window = 1 + Math.sqrt(8 * (1 - p) / (3 * p) + 1);
    const allThreeArrive = (1 - p) ** 3;
    const timeouts = window <= 3 ? 1 : Math.min(
      1, (1 - allThreeArrive) * (1 + allThreeArrive * (1 - (1 - p) ** (window - 3))) / (1 - (1 - p) ** window),
    );
    const backoff = 1 + p + 2 * p ** 2 + 4 * p ** 3 + 8 * p ** 4 + 16 * p ** 5 + 32 * p ** 6;
    const segments = (1 - p) / p + window + timeouts / (1 - p);
    const rounds = window / 2 + 1;
    return segments / (rttMs / 1e3 * rounds + timeouts * rtoMs / 1e3 * backoff / (1 - p));
  }

  // PFTK's goodput in bit/s, with the timeout that Linux has where the round-trip time hardly varies.
  function pftk(mssBytes, rttMs, p, rtoMarginMs) {
    if (p === 1) return 0;
    if (p === 0 || rttMs === 0) return Infinity;
    return mssBytes * 8 * (1 - p) * pftkSegmentsPerS(rttMs, p, rttMs + rtoMarginMs);
  }

  Object.assign(window.measureTwice, { formulas: { mathis, losses, timeForLossesS, pftk } });
})();
